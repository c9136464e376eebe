module github.com/upfront-mem/upfront/budget/cmd

go 1.26.0

require (
	github.com/google/pprof v0.0.0-20261016150608-1facf8f91b50
	github.com/spf13/cobra v1.10.2
	github.com/upfront-mem/upfront v0.0.0
	github.com/upfront-mem/upfront/budget/with/pprof v0.0.0
	go.yaml.in/yaml/v3 v3.0.5
	golang.org/x/term v0.47.0
	golang.org/x/tools v0.52.0
)

require (
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace (
	github.com/upfront-mem/upfront => ../..
	github.com/upfront-mem/upfront/budget/with/pprof => ../with/pprof
)

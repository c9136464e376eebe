module github.com/upfront-mem/upfront/budget/with/pprof

go 1.26.0

replace github.com/upfront-mem/upfront => ../../..

require (
	github.com/google/pprof v0.0.0-20261016150608-1facf8f91b50
	github.com/stretchr/testify v1.12.1
	github.com/upfront-mem/upfront v0.0.0
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

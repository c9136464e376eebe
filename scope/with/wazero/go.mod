module github.com/upfront-mem/upfront/scope/with/wazero

go 1.26.0

replace github.com/upfront-mem/upfront => ../../..

require (
	github.com/stretchr/testify v1.12.1
	github.com/tetratelabs/wazero v1.12.0
	github.com/upfront-mem/upfront v0.0.0
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

module github.com/upfront-mem/upfront/budget/save/s2

go 1.26.0

replace github.com/upfront-mem/upfront => ../../..

require (
	github.com/klauspost/compress v1.20.3
	github.com/stretchr/testify v1.12.1
	github.com/upfront-mem/upfront v0.0.0
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

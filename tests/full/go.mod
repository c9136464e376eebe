module github.com/upfront-mem/upfront/tests/full

go 1.26.0

replace (
	github.com/upfront-mem/upfront => ../..
	github.com/upfront-mem/upfront/arena/with/sqlite => ../../arena/with/sqlite
)

require (
	github.com/mattn/go-sqlite3 v1.14.53
	github.com/stretchr/testify v1.12.1
	github.com/tree-sitter/go-tree-sitter v0.25.0
	github.com/tree-sitter/tree-sitter-json v0.24.8
	github.com/upfront-mem/upfront v0.0.0
	github.com/upfront-mem/upfront/arena/with/sqlite v0.0.0
)

require (
	github.com/mattn/go-pointer v0.0.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

module github.com/upfront-mem/upfront/tests/bench

go 1.26.0

require (
	github.com/davidbyttow/govips/v2 v2.16.0
	github.com/hashicorp/golang-lru/v2 v2.0.7
	github.com/mattn/go-sqlite3 v1.14.53
	github.com/tree-sitter/go-tree-sitter v0.25.0
	github.com/tree-sitter/tree-sitter-go v0.23.4
	github.com/upfront-mem/upfront v0.0.0
	github.com/upfront-mem/upfront/arena/with/sqlite v0.0.0
	github.com/upfront-mem/upfront/budget/with/pprof v0.0.0
	golang.org/x/sync v0.23.0
	modernc.org/memory v1.12.1
)

require (
	github.com/google/pprof v0.0.0-20261016150608-1facf8f91b50 // indirect
	github.com/mattn/go-pointer v0.0.1 // indirect
	golang.org/x/image v0.18.0 // indirect
	golang.org/x/net v0.25.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.16.0 // indirect
)

replace (
	github.com/upfront-mem/upfront => ../..
	github.com/upfront-mem/upfront/arena/with/sqlite => ../../arena/with/sqlite
	github.com/upfront-mem/upfront/budget/with/pprof => ../../budget/with/pprof
)

module github.com/upfront-mem/upfront/arena/with/sqlite

go 1.26.0

replace github.com/upfront-mem/upfront => ../../..

require (
	github.com/mattn/go-sqlite3 v1.14.53
	github.com/stretchr/testify v1.12.1
	github.com/upfront-mem/upfront v0.0.0
)

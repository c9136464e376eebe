module github.com/upfront-mem/upfront/tests/bench

go 1.26.0

require (
	github.com/apache/arrow-go/v18 v18.8.0
	github.com/bytedance/gopkg v0.1.4
	github.com/dgraph-io/ristretto/v2 v2.4.2
	github.com/upfront-mem/upfront v0.0.0
	modernc.org/memory v1.12.1
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/upfront-mem/upfront => ../..

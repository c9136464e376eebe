module github.com/upfront-mem/upfront/tests/bench

go 1.26.0

require (
	github.com/upfront-mem/upfront v0.0.0
	modernc.org/memory v1.12.1
)

require golang.org/x/sys v0.49.0 // indirect

replace github.com/upfront-mem/upfront => ../..

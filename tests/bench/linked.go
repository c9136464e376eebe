package main

// The packages that show a budget are linked in but unused. So the gate proves that they cost
// nothing until they are used. with/prometheus has a test of its own, because the start of
// client_golang would count here.
import (
	_ "github.com/upfront-mem/upfront/budget/view"
	_ "github.com/upfront-mem/upfront/budget/view/live"
	_ "github.com/upfront-mem/upfront/budget/with/pprof"
)

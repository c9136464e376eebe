package main

// What shows a budget is linked into what is measured, and off: so the gate holds that it costs nothing until somebody looks.
// Of with/prometheus its own test says so: what client_golang does when a program starts would be counted here.
import (
	_ "github.com/upfront-mem/upfront/budget/view"
	_ "github.com/upfront-mem/upfront/budget/view/live"
	_ "github.com/upfront-mem/upfront/budget/with/pprof"
)

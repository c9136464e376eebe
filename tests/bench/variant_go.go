//go:build !upfront_cgo && !goexperiment.arenas

package main

const offered, shownAs = "", ""

func arenaObjects() []contestant { return nil }

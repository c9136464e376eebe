//go:build upfront_cgo

package main

const offered, shownAs = library, crossing

func arenaObjects() []contestant { return nil }

//go:build upfront_cgo

package main

const offered = library

func arenaObjects() []contestant { return nil }

//go:build upfront_cgo

package main

func init() { build = "bindings" }

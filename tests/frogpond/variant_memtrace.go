//go:build memtrace

package main

func init() { build = "memtrace" }

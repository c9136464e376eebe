//go:build asan

package main

func init() { build = "asan" }

//go:build memdebug

package main

func init() { build = "memdebug" }

//go:build checked

package main

func init() { build = "checked" }

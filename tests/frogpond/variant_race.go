//go:build race

package main

func init() { build = "race" }

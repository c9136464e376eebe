//go:build !asan

package main

// A crash in C shows C functions, files and lines. Under asan the tool says them itself, and its
// leak check at exit would take the symbolizer's tables for a leak.
import _ "github.com/upfront-mem/upfront/platform/symbolize"

//go:build !asan

package main

// With this import, a crash in C shows C functions, files and lines. Not under asan: the sanitizer
// prints them itself, and its leak check at exit would report the symbolizer's tables.
import _ "github.com/upfront-mem/upfront/platform/symbolize"

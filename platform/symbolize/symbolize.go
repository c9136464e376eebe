// Package symbolize makes the traceback of a crash in C show C functions, files and lines above the Go frames. A
// program opts in by a blank import:
//
//	import _ "github.com/upfront-mem/upfront/platform/symbolize"
//
// It is process-wide, and of use in binaries made by go build; go run strips the symbols it reads. A callback from C
// into Go shows no C frames. The work is done by Ian Lance Taylor's cgosymbolizer.
package symbolize

import _ "github.com/ianlancetaylor/cgosymbolizer"

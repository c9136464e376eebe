package main

import (
	"runtime/debug"
	"strings"
)

// build is the name of the running build, such as "release" or "race", from the flags of the go
// command.
var build = func() string {
	name := "release"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return name
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "-race" || s.Key == "-asan":
			return s.Key[1:]
		case s.Key == "-tags" && strings.Contains(s.Value, "checked"):
			name = "checked"
		case s.Key == "-tags" && strings.Contains(s.Value, "upfront_cgo"):
			name = "bindings"
		}
	}
	return name
}()

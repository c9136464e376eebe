//go:build !cgo

package cfloor

import _ "github.com/upfront-mem/upfront/arena_c" // its error names cgo

//go:build !cgo

package threads

import _ "github.com/upfront-mem/upfront/arena_c" // says that it needs cgo

//go:build !cgo

package bindings

import _ "github.com/upfront-mem/upfront/arena_c" // says that it needs cgo

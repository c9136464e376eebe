//go:build !cgo

package caller

import _ "github.com/upfront-mem/upfront/arena_c" // says that it needs cgo

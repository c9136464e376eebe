//go:build cgo

package symbolize

import _ "github.com/ianlancetaylor/cgosymbolizer"

package cache

import (
	"fmt"

	"github.com/upfront-mem/upfront/scope"
)

var octets = scope.Plain[byte]()

func misuse(text string, args ...any) *scope.Misuse {
	return &scope.Misuse{Text: fmt.Sprintf(text, args...)}
}

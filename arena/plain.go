package arena

import (
	"errors"
	"reflect"
	"strings"

	"github.com/upfront-mem/upfront/arena/plain"
)

// CheckPlain says whether values of t may live in a block: nil, or an error with a line for each field, at any depth, that
// holds a Go pointer, and its counterpart. Types of the standard library and of this one are named as a whole: what is
// inside them is not the caller's to change. The collector does not look into a block, so what only a block points to would
// be lost.
//
// It walks the type, which costs a hundred allocations and more. Check a type once, where it is declared.
func CheckPlain(t reflect.Type) error {
	if lines := plain.Check(plain.Go(t)); lines != nil {
		return errors.New(strings.Join(lines, "\n"))
	}
	return nil
}

package arena

import (
	"errors"
	"reflect"
	"strings"

	"github.com/upfront-mem/upfront/arena/plain"
)

// CheckPlain returns nil if values of t may be stored in a block. Otherwise it returns an error
// with a line for each field, at any depth, that holds a Go pointer, and the type to use instead.
// The error names a type of the standard library, or of package arena, scope, container or budget,
// as a whole, because the caller can't change its fields. The collector doesn't look into a block,
// so an object that only a block points to would be lost.
//
// The walk of a struct may cost a hundred allocations and more. Check a type once, where it is
// declared.
func CheckPlain(t reflect.Type) error {
	if lines := plain.Check(plain.Go(t)); lines != nil {
		return errors.New(strings.Join(lines, "\n"))
	}
	return nil
}

package conformance

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/tests/conformance/bindings"
)

// TestStructsHaveTheSameWords: Go and C find each word at the same place, under the same name.
func TestStructsHaveTheSameWords(t *testing.T) {
	for _, both := range bindings.Structs {
		ours, theirs := map[uintptr]string{}, map[uintptr]string{}
		words(ours, both[0], 0)
		words(theirs, both[1], 0)
		assert.Equal(t, theirs, ours, "%v", both[0])
	}
}

// words lists the words of a struct by their offset, as `farlast` for FarLast and far_last, with
// those of its inner structs.
func words(found map[uintptr]string, in reflect.Type, at uintptr) {
	for i := range in.NumField() {
		f := in.Field(i)
		name := strings.ToLower(strings.ReplaceAll(f.Name, "_", ""))
		switch {
		case f.Type.Kind() == reflect.Struct:
			words(found, f.Type, at+f.Offset)
		case name != "" && name != "unused":
			found[at+f.Offset] = name
		}
	}
}

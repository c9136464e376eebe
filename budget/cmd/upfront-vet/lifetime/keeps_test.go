package lifetime

import (
	"fmt"
	"slices"
	"testing"
)

// TestKeeps checks that the directive silences only its line, the next, a declaration, or a file.
func TestKeeps(t *testing.T) {
	const head = `package container_test
import "github.com/upfront-mem/upfront/scope"

`
	cases := []struct {
		name, text string
		want       []int // the reported lines
	}{
		{"nothing", head + "var _ = scope.Plain[string]()\n", []int{4}},
		{"its line", head + "var _ = scope.Plain[string]() //upfront:keeps it is refused\n", nil},
		{"its line alone", head +
			"var _ = scope.Plain[string]() //upfront:keeps it is refused\nvar _ = scope.Plain[string]()\n", []int{5}},
		{"the line above", head + "//upfront:keeps\nvar _ = scope.Plain[string]()\n", nil},
		{"two lines above", head + "//upfront:keeps\n\nvar _ = scope.Plain[string]()\n", []int{6}},
		{"the line behind", head + "var _ = scope.Plain[string]()\n//upfront:keeps\n", []int{4}},
		{"another word", head + "var _ = scope.Plain[string]() //upfront:keepsake\n", []int{4}},
		{"a function", head + "// whole is wrong.\n//\n//upfront:keeps all\n" +
			"func whole() {\n\t_ = 1\n\tscope.Plain[string]()\n}\n\n" +
			"func other() { scope.Plain[string]() }\n", []int{12}},
		{"the file", "//upfront:keeps all\n\n" + head + "func silent() { scope.Plain[string]() }\n", nil},
	}
	g := newGarden(t, root)
	file := func(i int) string { return fmt.Sprintf("scope/container/keeps%d_test.go", i) }
	for i, c := range cases {
		g.edit(edit{file(i), "", c.text})
	}
	list := g.vet()
	for i, c := range cases {
		var got []int
		for _, f := range list {
			if f.file == file(i) {
				got = append(got, f.line)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: reported: %v", c.name, got)
		}
	}
}

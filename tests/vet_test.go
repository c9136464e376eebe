//go:build !race && !asan && !checked && !upfront_cgo

package tests

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/tests/step"
)

// TestVetRefusesCopies runs go vet on a package that copies values that must not be copied. It must
// report exactly the lines and types that the source marks.
func TestVetRefusesCopies(t *testing.T) {
	step.Needs(t, step.Check)
	var want, got []string
	for i, line := range strings.Split(page(t, "tests/testdata/copies/copies.go"), "\n") {
		if _, name, ok := strings.Cut(line, "// vet: "); ok {
			want = append(want, fmt.Sprintf("%d: %s", i+1, name))
		}
	}
	out, err := exec.Command("go", "vet", "./testdata/copies").CombinedOutput()
	assert.Error(t, err)
	refusal := regexp.MustCompile(`copies\.go:(\d+):.* lock .*?: ` + module + `/(.*?) contains`)
	for _, said := range refusal.FindAllStringSubmatch(string(out), -1) {
		got = append(got, said[1]+": "+said[2])
	}
	assert.ElementsMatch(t, want, got, "%s", out)
}

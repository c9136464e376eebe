//go:build linux && !race && !asan && !checked && !upfront_cgo

package tests

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// small is a program that prints its resident KiB after a collection.
const small = `package main

%s
import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

func main() {
	%s
	debug.FreeOSMemory()
	text, _ := os.ReadFile("/proc/self/smaps_rollup")
	_, text2, _ := strings.Cut(string(text), "\nRss:")
	fmt.Println(strings.Fields(text2)[0])
}
`

// TestSmallPrograms measures the programs of the page's table of resident memory, and prints the
// table. The sizes are the machine's, so only their order is checked.
func TestSmallPrograms(t *testing.T) {
	step.Needs(t, step.Gate)
	open := func(region string) string {
		return fmt.Sprintf(`b, err := budget.Open(budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", %s}}})
	if err != nil {
		panic(err)
	}
	defer b.Close()`, region)
	}
	const cgo, uses = `import "C"`, `import "github.com/upfront-mem/upfront/budget"`
	var sizes []int
	table := "| program | KiB |\n|---|--:|\n"
	for _, x := range []struct{ name, imports, body string }{
		{"a Go program that prints a line", "", ""},
		{"the same with cgo", cgo, ""},
		{"with package budget", strings.Replace(uses, `"`, `_ "`, 1), ""},
		{"with a region of 64 KiB", uses, open(`Size: 64 * budget.KiB`)},
		{"with 128 slots of 16 KiB", uses, open(`Size: 16 * budget.KiB, Slots: 128`)},
		{"with limits of 1 for these", uses, open(`Size: 16 * budget.KiB, Slots: 128,
		Limits: budget.Limits{Scopes: 1, Pools: 1, Owned: 1, Labels: 1}`)},
	} {
		dir := program(t, fmt.Sprintf(small, x.imports, x.body))
		var runs []int
		for range 5 {
			text, _ := printed(t, dir)
			size, err := strconv.Atoi(strings.TrimSpace(text))
			require.NoError(t, err, text)
			runs = append(runs, size)
		}
		slices.Sort(runs)
		sizes = append(sizes, runs[2])
		table += fmt.Sprintf("| %s | %d |\n", x.name, runs[2])
	}
	t.Log("\n" + table)
	assert.True(t, slices.IsSorted(sizes[:5]), sizes)
	assert.Less(t, sizes[5], sizes[4])
}

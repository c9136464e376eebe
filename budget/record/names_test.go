package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// TestNames: a name may have any bytes: long ones are cut, and errors show them in one line.
func TestNames(t *testing.T) {
	for _, name := range []string{"", "a b", "two\nlines", "nul\x00", "\xff\xfe not UTF-8", "\x1b[31mred", `"quoted"`,
		"日本語", strings.Repeat("long", 1<<10), strings.Repeat("longer", 1<<16)} {
		trace, was := recorded(t, game(), func(b *budget.Budget, r *record.Recording) {
			r.Mark(name)
			require.NoError(t, scope.Label(b.Frame(), name, func() error { return nil }))
			_ = b.Scratch(0, 0).Do(name, func(s scope.Scope) error {
				_ = s.Do(name+"!", func(scope.Scope) error { return nil })
				octets.Slice(s, 1000)
				return nil
			})
		})
		same(t, trace, was)
		plan := game()
		plan.Scratch.Size = 100
		e := failed(t, plan, bytes.NewReader(trace))
		cut := name[:min(len(name), 1<<12)]
		assert.Equal(t, cut, e.Mark)
		told := name[:min(len(name), 128)] // a scope's
		assert.Equal(t, []string{told}, e.Scopes)
		assert.Contains(t, e.Error(), fmt.Sprintf("in scope %q: budget \"game\": scratch 0.0 is full: ", told))
		assert.Equal(t, name != "", strings.HasPrefix(e.Error(), fmt.Sprintf("after mark %q, event ", cut)))
		before, _, _ := strings.Cut(e.Error(), "\n\tasked at:")
		assert.NotContains(t, before, "\n")
		assert.NotContains(t, e.Error(), "\x1b")
	}
}

// TestNamesOfCalls: the calls in a file are shown, with any bytes.
func TestNamesOfCalls(t *testing.T) {
	trace, _ := recorded(t, game(), func(*budget.Budget, *record.Recording) {})
	trace = trace[:len(trace)-1]
	const texts = 5 + 3 + 4 + 1 // of arenas, and the scope "frame"
	trace = append(trace, 1, texts, 1, 's', 14, 0xff, 0xff, 0x7f, texts+1, 12)
	trace = append(trace, "\x1b[31mf\xff a:1\n"...)
	e := failed(t, game(), bytes.NewReader(trace))
	assert.Equal(t, []string{"\uFFFD[31mf\uFFFD a:1", ""}, e.Made)
	assert.Contains(t, e.Error(), "\n\tasked at:\n\t\t\uFFFD[31mf\uFFFD a:1\n")
}

// TestNamesWithoutEnd: endless new names are written each time; neither recording nor replay keeps
// more than its limit.
func TestNamesWithoutEnd(t *testing.T) {
	step.Needs(t, step.Check) // it opens 200,000 scopes
	var heap [2]runtime.MemStats
	name := filepath.Join(t.TempDir(), "trace")
	file, err := os.Create(name)
	require.NoError(t, err)
	b := open(t, game())
	r, err := record.Start(b, file)
	require.NoError(t, err)
	for i := range 3 << 16 {
		require.NoError(t, b.Scratch(0, 0).Do(fmt.Sprintf("request %d", i), func(s scope.Scope) error {
			octets.New(s)
			return nil
		}))
		if i == 1<<16 { // the kept names have numbers
			runtime.GC()
			runtime.ReadMemStats(&heap[0])
		}
	}
	r.Mark("the last")
	runtime.GC()
	runtime.ReadMemStats(&heap[1])
	require.NoError(t, errors.Join(b.Close(), r.Close(), file.Close()))
	assert.Less(t, heap[1].HeapAlloc, heap[0].HeapAlloc+1<<18)

	file, err = os.Open(name)
	require.NoError(t, err)
	defer file.Close()
	report, played, err := record.Replay(game(), file)
	require.NoError(t, err)
	assert.Equal(t, "the last", played.Mark)
	assert.EqualValues(t, 1, beside(report)[3].Peak)
}

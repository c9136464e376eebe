package save_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// fails is a Writer that accepts left bytes.
type fails struct{ left int }

func (f *fails) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, assert.AnError
	}
	return len(b), nil
}

// TestShow: each region shows its own pools in an image of two, and an error of the writer is
// returned at any place.
func TestShow(t *testing.T) {
	plan := twoRegions()
	plan.Regions[1].State = true
	b := open(t, plan)
	var states [2]*save.State
	for i, name := range []string{"level", "extra"} {
		load(t, b, name, func(r budget.Region, s scope.Scope) {
			states[i], _ = save.Begin(r, s, roomMaker)
			flies := flyMaker.Pool(s, 3+i)
			flies.Get()
		})
	}
	var ring *save.Ring
	load(t, b, "rollback", func(_ budget.Region, s scope.Scope) {
		ring = save.NewRing(s, 1, states[0], states[1])
	})
	require.NoError(t, ring.Take(7))
	file := written(t, ring, 7)
	var text bytes.Buffer
	require.NoError(t, save.Show(&text, bytes.NewReader(file)))
	assert.Regexp(t, `(?s)snapshot 7 of plan "two": .*`+
		`region "level": .*, root save_test.room\n  offset \S+ +pool of save_test.fly +3 chunks of `+
		`16 bytes, 1 live\n.*`+
		`region "extra": .*, root save_test.room\n  offset \S+ +pool of save_test.fly +4 chunks of `+
		`16 bytes, 1 live\n.*`+
		`type save_test.fly +16 bytes +At uint64, Left uint64\n`, text.String())
	for lines := range strings.Count(text.String(), "\n") {
		all := strings.SplitAfter(text.String(), "\n")[:lines]
		most := len(strings.Join(all, ""))
		assert.ErrorIs(t, save.Show(&fails{most}, bytes.NewReader(file)), assert.AnError)
	}
	assert.ErrorContains(t, save.Show(&text, bytes.NewReader(file[:99])), "byte 99: the file ends early")
}

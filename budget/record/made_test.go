package record_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/scope"
)

func makeFrogs(s scope.Scope) { frogs.Slice(s, 50) }

// TestMade: a recording of a checked build has the line of the allocation that doesn't fit.
func TestMade(t *testing.T) {
	trace, was := recorded(t, game(), func(b *budget.Budget, r *record.Recording) {
		r.Mark("E1M1")
		load(t, b.Region("level"), func(s scope.Scope) {
			octets.Slice(s, 100)
			makeFrogs(s)
			octets.Slice(s, 100)
		})
		r.Mark("E1M2")
	})
	same(t, trace, was)
	plan := game()
	plan.Regions[1].Size = 200
	e := failed(t, plan, bytes.NewReader(trace))
	assert.Equal(t, "E1M1", e.Mark)
	assert.Equal(t, []string{"level"}, e.Scopes)
	if !arena_c.Checked {
		assert.Empty(t, e.Made)
		return
	}
	require.NotEmpty(t, e.Made)
	assert.Contains(t, e.Made[0], "record_test.makeFrogs ")
	assert.Contains(t, e.Made[0], "made_test.go:")
	assert.Contains(t, e.Error(), "\n\tasked at:\n\t\t"+e.Made[0]+"\n\t\t")
	assert.Contains(t, e.Error(), "asked for 600 bytes, 100 of 200 are free")
	assert.NotContains(t, strings.Join(e.Made, "\n"), "/scope/")
}

// TestMadeByEach: in a checked build each way to allocate records its line.
func TestMadeByEach(t *testing.T) {
	if !arena_c.Checked {
		t.Skip("only a checked build knows the line of a request: go test -tags checked ./budget/record does")
	}
	for name, fn := range map[string]func(s scope.Scope){
		"New":               func(s scope.Scope) { frogs.New(s) },
		"TryNew":            func(s scope.Scope) { frogs.TryNew(s) },
		"Make":              func(s scope.Scope) { _, _ = frogs.Make(s, func(*frog) error { return nil }) },
		"Slice":             func(s scope.Scope) { frogs.Slice(s, 3) },
		"TrySlice":          func(s scope.Scope) { frogs.TrySlice(s, 3) },
		"SliceCap":          func(s scope.Scope) { frogs.SliceCap(s, 0, 3) },
		"SliceAligned":      func(s scope.Scope) { frogs.SliceAligned(s, 1, 64) },
		"Clone":             func(s scope.Scope) { frogs.Clone(s, make([]frog, 2)) },
		"Append":            func(s scope.Scope) { frogs.Append(s, nil, frog{}) },
		"Build":             func(s scope.Scope) { list := frogs.Build(s); list.Push(frog{}); list.Done() },
		"Pool":              func(s scope.Scope) { frogs.Pool(s, 2) },
		"HandlePool":        func(s scope.Scope) { frogs.HandlePool(s, 2) },
		"SharedPool":        func(s scope.Scope) { frogs.SharedPool(s, 2) },
		"object":            func(s scope.Scope) { objects.New(s) },
		"TryNew of objects": func(s scope.Scope) { objects.TryNew(s) },
		"Make of objects":   func(s scope.Scope) { _, _ = objects.Make(s, func(*frog) error { return nil }) },
		"objects":           func(s scope.Scope) { objects.Slice(s, 2) },
		"Pool of objects":   func(s scope.Scope) { objects.Pool(s, 2) },
		"Own":               func(s scope.Scope) { s.Defer(func() {}) },
		"Keep":              func(s scope.Scope) { s.Keep(1) },
		"Label":             func(s scope.Scope) { _ = scope.Label(s, "x", func() error { return nil }) },
		"Bytes":             func(s scope.Scope) { s.Bytes(9) },
		"BytesUnzeroed":     func(s scope.Scope) { s.BytesUnzeroed(9, 64) },
		"AllocUnzeroed":     func(s scope.Scope) { s.AllocUnzeroed(9, 1) },
		"Sprintf":           func(s scope.Scope) { scope.Sprintf(s, "%d", 1000) },
	} {
		trace, _ := recorded(t, game(), func(b *budget.Budget, _ *record.Recording) {
			load(t, b.Region("level"), fn)
		})
		plan := game()
		plan.Regions[1].Size = 1
		e := failed(t, plan, bytes.NewReader(trace))
		assert.True(t, len(e.Made) > 0 && strings.Contains(e.Made[0], "record_test.TestMadeByEach.func"), "%s: %s",
			name, e.Made)
	}
}

package scope_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

var (
	longs   = scope.Plain[uint64]()
	empties = scope.Plain[struct{}]()
	chars   = scope.Plain[byte]()
)

// count gives from ... from+n-1.
func count(from, n int) (list []uint64) {
	for i := range n {
		list = append(list, uint64(from+i))
	}
	return list
}

func at[T any](list []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(list)) }

func TestMisusedSlices(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("s")
	var undeclared scope.Maker[uint64]
	const half = math.MaxInt/2 + 1
	list, most := longs.SliceCap(s, 1, 1), empties.Slice(s, math.MaxInt)
	for _, misuse := range []struct {
		want string
		do   func()
	}{
		{"a Maker that was never declared: make it with scope.Plain or scope.Object", func() { undeclared.Append(s, list, 1, 2) }},
		{"a Maker that was never declared: make it with scope.Plain or scope.Object", func() { undeclared.Append(s, list, 1) }},
		{"a Maker that was never declared: make it with scope.Plain or scope.Object", func() { undeclared.Append(s, nil) }},
		{"a Maker that was never declared: make it with scope.Plain or scope.Object", func() { undeclared.Clone(s, list) }},
		{"a Maker that was never declared: make it with scope.Plain or scope.Object", func() { undeclared.SliceCap(s, 1, 1) }},
		{"a Maker that was never declared: make it with scope.Plain or scope.Object", func() { undeclared.SliceAligned(s, 1, 8) }},
		{"a Maker that was never declared: make it with scope.Plain or scope.Object", func() { _, _ = undeclared.Make(s, nil) }},
		{"a slice of 5 elements with room for 4", func() { longs.SliceCap(s, 5, 4) }},
		{"a slice of -1 elements with room for 4", func() { longs.SliceCap(s, -1, 4) }},
		{"a slice of -2 elements with room for -1", func() { longs.SliceCap(s, -2, -1) }},
		{"a slice of -1 elements", func() { longs.SliceAligned(s, -1, 8) }},
		{"a slice aligned to 0: an align is a power of two up to 1 MiB", func() { longs.SliceAligned(s, 1, 0) }},
		{"a slice aligned to 24: an align is a power of two up to 1 MiB", func() { longs.SliceAligned(s, 1, 24) }},
		{"a slice aligned to 2097152: an align is a power of two up to 1 MiB", func() { longs.SliceAligned(s, 1, 1<<21) }},
		{fmt.Sprintf("a slice of %d and 1 more elements", math.MaxInt), func() { empties.Append(s, most, struct{}{}) }},
		{fmt.Sprintf("a slice of %d and %[1]d more elements", half), func() { empties.Append(s, most[:half], most[:half]...) }},
	} {
		used := scratch.Stats()
		assert.PanicsWithError(t, "scope: BUG: "+misuse.want, misuse.do)
		assert.Equal(t, used, scratch.Stats())
	}
	_ = s.Close()
}

func TestHugeSlicesAreFull(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("s")
	used := scratch.Stats().Used
	for _, count := range []uint64{1 << 28, 1 << 30, 1 << 35, 1 << 37, 1 << 38, 1 << 60, 1<<61 - 1, 1 << 61, math.MaxInt} {
		n := int(min(count, math.MaxInt))
		for _, do := range []func(){
			func() { longs.SliceCap(s, 1, n) },
			func() { longs.SliceAligned(s, n, 64) },
			func() { longs.Slice(s, n) },
		} {
			err := recovered(do)
			assert.ErrorIs(t, err, scope.ErrFull, "%d", n)
			assert.Equal(t, used, scratch.Stats().Used)
		}
	}
	if length := uint64(1) << 40; !instrumented && length <= math.MaxInt { // checkptr looks at the lie
		var b byte
		lie := unsafe.Slice(&b, length)
		for _, list := range [][]byte{nil, chars.Slice(s, 1)} {
			err := recovered(func() { chars.Append(s, list, lie...) })
			assert.ErrorContains(t, err, "asked for 274877906944 bytes", "also what is longer than a generation is wide")
		}
	}
	_ = s.Close()
}

// recovered is the error that fn panics with, or nil.
func recovered(fn func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = v.(error)
		}
	}()
	fn()
	return nil
}

func TestSliceCap(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	dirty := scratch.Open("dirty")
	for i := range chars.Slice(dirty, 1000) {
		chars.Slice(dirty, 1)[0] = byte(i) | 1
	}
	require.NoError(t, dirty.Close())
	s := scratch.Open("s")
	list := longs.SliceCap(s, 2, 5)
	assert.Len(t, list, 2)
	assert.Equal(t, 5, cap(list))
	assert.Equal(t, make([]uint64, 5), list[:5])
	longer := append(list, 1, 2, 3)
	assert.Equal(t, at(list), at(longer), "the built-in stays inside, up to the capacity")
	assert.NotEqual(t, at(list), at(append(longer, 4)))
	assert.EqualValues(t, 40, scratch.Stats().Used)
	none := longs.SliceCap(s, 0, 0)
	assert.NotNil(t, none)
	assert.Empty(t, none)
	assert.Len(t, empties.SliceCap(s, 3, math.MaxInt), 3)
	require.NoError(t, s.Close())
}

func TestSliceAligned(t *testing.T) {
	b, err := budget.Open(budget.Plan{Name: "test", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}}})
	require.NoError(t, err)
	defer b.Close()
	_, err = budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*point, error) {
		for _, where := range []scope.Scope{s, s.Temp(300_000)} {
			for align := uint64(1); align <= 1<<16; align *= 2 {
				where.Bytes(1)
				for _, n := range []int{0, 1, 3} {
					list := longs.SliceAligned(where, n, align)
					assert.Len(t, list, n)
					assert.Equal(t, n, cap(list))
					assert.Zero(t, uint64(uintptr(at(list)))%max(align, 8), "%d aligned to %d", n, align)
					assert.Equal(t, make([]uint64, n), list)
				}
			}
		}
		return nil, nil
	})
	require.NoError(t, err)
}

func TestClone(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("s")
	list := count(1, 5)
	clone := longs.Clone(s, list[:4])
	assert.Equal(t, count(1, 4), clone)
	assert.Equal(t, 4, cap(clone))
	clone[0] = 9
	assert.EqualValues(t, 1, list[0], "a copy")
	assert.EqualValues(t, 32, scratch.Stats().Used)
	twice := longs.Clone(s, clone)
	assert.NotEqual(t, at(clone), at(twice))
	assert.Nil(t, longs.Clone(s, nil))
	empty := longs.Clone(s, []uint64{})
	assert.NotNil(t, empty)
	assert.Empty(t, empty)
	assert.EqualValues(t, 64, scratch.Stats().Used)
	assert.ErrorIs(t, recovered(func() { longs.Clone(s, make([]uint64, scratchSize/8)) }), scope.ErrFull)
	_ = s.Close()
}

func TestPlainMake(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("s")
	p, err := points.Make(s, func(p *point) error { p.X = 1; newMark(s, 2, 0); return nil })
	require.NoError(t, err)
	assert.Equal(t, point{1, 0}, *p)
	before := scratch.Stats()
	parts := func(end func() error) func(*point) error {
		return func(p *point) error {
			assert.Zero(t, *p)
			*p = point{7, 7}
			newMark(s, 3, 0)
			s.Own(&closer{id: 4})
			s.Open("left open")
			return end()
		}
	}
	for want, end := range map[string]func() error{
		"mark failed":         func() error { return errMark },
		"scope: BUG: Make in": func() error { return nil },
		"boom":                func() error { panic(fmt.Errorf("boom")) },
		"is full":             func() error { innermost(scratch).AllocUnzeroed(1<<20, 1); return nil },
	} {
		closed = nil
		var err error
		if thrown := recovered(func() { p, err = points.Make(s, parts(end)) }); thrown != nil {
			err, p = thrown, nil
		}
		assert.ErrorContains(t, err, want)
		assert.Nil(t, p)
		assert.Equal(t, []int64{4, 3}, closed)
		assert.Equal(t, 1, scratch.Depth())
		after := scratch.Stats()
		assert.Equal(t, before.Used, after.Used)
		assert.Equal(t, before.Objects, after.Objects)
	}
	inner := s.Open("inner")
	assert.EqualError(t, recovered(func() { _, _ = points.Make(s, parts(nil)) }),
		`scope: BUG: Make in scope "s" of scratch 0.0 while scope "inner", opened in it, is open`)
	assert.EqualError(t, recovered(func() { _, _ = points.Make(inner, func(*point) error { return inner.Close() }) }),
		"scope: BUG: Make in a scope of scratch 0.0 that is closed")
	assert.Equal(t, 1, scratch.Depth())
	_ = s.Close()
}

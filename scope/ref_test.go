package scope_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

type follower struct {
	Leader scope.Ref[follower]
	Target scope.Ref[point]
}

var (
	followers = scope.Plain[follower]()
	nothings  = scope.Plain[struct{}]()
)

const _ = -(unsafe.Sizeof(scope.Ref[point]{}) ^ 16) // 16 bytes, as promised

// TestRefOutlivesAFrame: a Ref is in a block, and a frame's objects stay until the next frame ends.
func TestRefOutlivesAFrame(t *testing.T) {
	b, err := budget.Open(budget.Plan{Name: "test", Frame: budget.FramePlan{Buffers: 2, Size: scratchSize},
		Regions: []budget.RegionPlan{{Name: "level", Size: scratchSize}}})
	require.NoError(t, err)
	defer b.Close()
	x := points.New(b.Frame())
	x.X = 7
	level, err := budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*follower, error) {
		f := followers.New(s)
		f.Target, f.Leader = scope.RefTo(b.Frame(), x), scope.RefTo(s, f)
		return f, nil
	})
	require.NoError(t, err)
	f := level.Get()
	assert.Same(t, f, f.Leader.Get(), "the region is frozen, and there")
	assert.EqualValues(t, 7, f.Leader.Get().Target.Get().X)
	require.NoError(t, b.NextFrame())
	assert.Same(t, x, f.Target.Get())
	require.NoError(t, b.NextFrame())
	assert.Nil(t, f.Target.Get())
}

func TestRefRefusesWhatLiesElsewhere(t *testing.T) {
	b := open(t)
	scratch := b.Scratch(0, 0)
	outer := scratch.Open("outer")
	inOuter := points.New(outer)
	s := outer.Open("s")
	list := points.Slice(s, 3)
	last := (*[2]point)(unsafe.Pointer(&list[2])) // reaches beyond the cursor
	beside := points.New(b.Scratch(0, 1).Open("beside"))
	const elsewhere = `scope: BUG: RefTo of a %s that is not in scope "s" of scratch 0.0 itself`
	text := fmt.Sprintf(elsewhere, "scope_test.point")
	inner := s.Open("inner")
	inInner := points.New(inner)
	for what, x := range map[string]*point{"around": inOuter, "inside": inInner, "beside": beside, "Go": {X: 1}} {
		assert.PanicsWithError(t, text, func() { scope.RefTo(s, x) }, what)
	}
	assert.PanicsWithError(t, fmt.Sprintf(elsewhere, "[2]scope_test.point"), func() { scope.RefTo(s, last) })
	require.NoError(t, inner.Close())
	for i := range list {
		assert.Same(t, &list[i], scope.RefTo(s, &list[i]).Get(), "each element")
	}
	assert.Same(t, &list[2].Y, scope.RefTo(s, &list[2].Y).Get(), "and a field")
	assert.Zero(t, scope.RefTo[point](s, nil))
	empty := nothings.New(s)
	assert.NotNil(t, scope.RefTo(s, empty).Get())

	pool := points.Pool(s, 4)
	chunk := pool.Get()
	assert.PanicsWithError(t, "scope: BUG: RefTo of a scope_test.point that is a chunk of a pool, which may be put "+
		"and taken again; name it by a handle, of a HandlePool", func() { scope.RefTo(s, chunk) })
	behind := points.New(s)
	assert.Same(t, behind, scope.RefTo(s, behind).Get())

	require.NoError(t, s.Close())
	for _, x := range []*point{nil, inOuter, &list[0]} {
		err := recovered(func() { scope.RefTo(s, x) })
		assert.EqualError(t, err, "scope: BUG: RefTo in a closed scope of scratch 0.0")
		assert.ErrorIs(t, err, scope.ErrClosed)
	}
}

func TestRefToTemporaries(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	older := s.Temp(1000)
	list := points.Slice(older, 10)
	first := scope.RefTo(older, &list[9])
	assert.Same(t, &list[9], first.Get())
	newer := s.Temp(1000)
	x := points.New(newer)
	second := scope.RefTo(newer, x)
	assert.Same(t, x, second.Get())
	assert.Same(t, &list[0], scope.RefTo(older, &list[0]).Get(), "not the newest, and there")
	beyond := (*point)(unsafe.Add(unsafe.Pointer(x), 64))
	for temp, wrong := range map[scope.Scope][]*point{newer: {beyond, &list[0], points.New(s), {}},
		older: {x, beyond, points.New(s), {}}} {
		for _, x := range wrong {
			assert.PanicsWithError(t,
				`scope: BUG: RefTo of a scope_test.point that is not in scope "temp" of scratch 0.0 itself`,
				func() { scope.RefTo(temp, x) })
		}
	}
	assert.Panics(t, func() { scope.RefTo(s, x) })
	require.NoError(t, newer.Close())
	assert.Nil(t, second.Get())
	assert.Same(t, &list[9], first.Get())
	require.NoError(t, s.Close())
	assert.Nil(t, first.Get())
}

// TestRefWhileAConstructorIsAtWork: the objects of a failed constructor are gone, though its scope
// is open.
func TestRefWhileAConstructorIsAtWork(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	older := points.New(s)
	const early = `scope: BUG: RefTo of a scope_test.%s that may be gone before scope "%s" of scratch 0.0 closes: ` +
		`its constructor hasn't succeeded yet; refer to it when Make has returned`
	for _, in := range []struct {
		name string
		at   scope.Scope
	}{{"a", s}, {"temp", s.Temp(1000)}} {
		for _, fails := range []error{nil, errMark} {
			var part *point
			m, err := marks.Make(in.at, func(m *mark) error {
				part = &points.Slice(in.at, 1)[0]
				assert.PanicsWithError(t, fmt.Sprintf(early, "point", in.name), func() { scope.RefTo(in.at, part) })
				assert.PanicsWithError(t, fmt.Sprintf(early, "mark", in.name), func() { scope.RefTo(in.at, m) })
				assert.NotNil(t, scope.RefTo(s, older).Get(), "what was there before stays")
				_, err := marks.Make(in.at, func(*mark) error {
					assert.Panics(t, func() { scope.RefTo(in.at, part) }, "older than this one, not than the outer one")
					return nil
				})
				assert.NoError(t, err)
				assert.Panics(t, func() { scope.RefTo(in.at, part) }, "the outer one is at work still")
				return fails
			})
			assert.ErrorIs(t, err, fails)
			if fails == nil {
				assert.Same(t, m, scope.RefTo(in.at, m).Get())
				assert.Same(t, part, scope.RefTo(in.at, part).Get())
			}
		}
	}
	assert.Panics(t, func() { _, _ = marks.Make(s, func(*mark) error { panic("constructor") }) })
	assert.NotPanics(t, func() { scope.RefTo(s, points.New(s)) })
	_, err := marks.Make(s, func(*mark) error {
		inner := s.Open("inner") // closes before the constructor ends
		x := points.New(inner)
		r := scope.RefTo(inner, x)
		assert.Same(t, x, r.Get())
		defer func() { assert.Nil(t, r.Get()) }()
		return inner.Close()
	})
	require.NoError(t, err)
}

// TestRefTellsBudgetsApart: budgets in the same zeroed bytes have the same rows, generations and
// ids.
func TestRefTellsBudgetsApart(t *testing.T) {
	plan := budget.Plan{Name: "test", Regions: []budget.RegionPlan{{Name: "level", Size: scratchSize}},
		Scratch: budget.ScratchPlan{Workers: 1, Size: scratchSize}}
	need, err := plan.Need()
	require.NoError(t, err)
	block := make([]byte, need+budget.MiB)
	var refs []scope.Ref[point]
	for range 5 {
		clear(block)
		b, err := budget.OpenIn(block, plan)
		require.NoError(t, err)
		s := b.Scratch(0, 0).Open("a")
		r := scope.RefTo(s, points.New(s))
		for _, old := range refs {
			require.Nil(t, old.Get(), "of a budget that is closed")
		}
		require.NotNil(t, r.Get())
		require.NoError(t, s.Close())
		s = b.Scratch(0, 1).Open("open when the budget closes") //upfront:keeps b.Close reports it
		refs = append(refs, r, scope.RefTo(s, points.New(s)))
		require.Error(t, b.Close())
		assert.Nil(t, refs[len(refs)-1].Get())
		assert.True(t, errors.Is(recovered(func() { scope.RefTo(s, &point{}) }), scope.ErrClosed))
	}
}

// TestRefsAgainstAModel nests scopes at random: Get returns the object exactly while its scope is
// open.
func TestRefsAgainstAModel(t *testing.T) {
	type known struct {
		ref scope.Ref[point]
		x   *point // nil: its scope closed
		id  int32
		of  scope.Scope
	}
	random := rand.New(rand.NewPCG(4, 2))
	scratch := open(t).Scratch(1, 0)
	var scopes []scope.Scope
	var born [][]int // indexes in refs, of each scope
	var refs []known
	for id := range int32(4000) {
		top := len(scopes) - 1
		switch choice := random.IntN(10); {
		case top < 0 || choice == 0 && top < 6:
			scopes, born = append(scopes, scratch.Open("s")), append(born, nil)
		case choice == 1:
			require.NoError(t, scopes[top].Close())
			for _, i := range born[top] {
				refs[i].x = nil
			}
			scopes, born = scopes[:top], born[:top]
		default:
			x := points.TryNew(scopes[top])
			require.NotNil(t, x)
			x.X = id
			born[top] = append(born[top], len(refs))
			refs = append(refs, known{scope.RefTo(scopes[top], x), x, id, scopes[top]})
		}
		for range min(20, len(refs)) {
			r := refs[random.IntN(len(refs))]
			if x := r.ref.Get(); r.x == nil {
				require.Nil(t, x)
			} else {
				require.Same(t, r.x, x)
				require.Equal(t, r.id, x.X)
				require.Equal(t, r.ref, scope.RefTo(r.of, x), "a covered scope's things are there")
			}
		}
	}
	for top := len(scopes) - 1; top >= 0; top-- {
		require.NoError(t, scopes[top].Close())
	}
	for _, r := range refs {
		require.Nil(t, r.ref.Get())
	}
}

// TestForgedRef: the words of a Ref may be anything. Get returns nil, or an address in an arena
// where a scope of that generation is open.
func TestForgedRef(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	x := points.New(s)
	good := scope.RefTo(s, x)
	require.Same(t, x, good.Get())
	words := func(r *scope.Ref[point]) *[2]uint64 { return (*[2]uint64)(unsafe.Pointer(r)) }
	// bits of the generation name another scope; the rest name another arena, or other bytes of
	// this one
	for bit := range 128 {
		forged := good
		words(&forged)[bit/64] ^= 1 << (bit % 64)
		if got := forged.Get(); got != nil {
			require.GreaterOrEqual(t, bit, 64, "another generation")
			far := uintptr(accounted(s, unsafe.Pointer(got))) - uintptr(accounted(s, unsafe.Pointer(x)))
			require.Less(t, far, uintptr(scratchSize), "it leads out of the arena")
			require.Zero(t, uintptr(unsafe.Pointer(got))%4)
		}
	}
	for _, forged := range [][2]uint64{{1<<64 - 1, 1<<64 - 1}, {words(&good)[0], 1<<64 - 1},
		{words(&good)[0], 1<<40 - 1}, {0, 0}, {1, 1}} {
		require.Nil(t, (*(*scope.Ref[point])(unsafe.Pointer(&forged))).Get(), "%#x", forged)
	}
}

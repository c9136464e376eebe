package budget_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

// inboxes has objects of a region above the slots, and uses of each. The last object is in a scope
// of its own.
func inboxes(s scope.Scope) map[string]func() error {
	pool, handles, objects := frogs.Pool(s, 2), frogs.HandlePool(s, 2), marks.Pool(s, 2)
	x, y := pool.Get(), objects.Get()
	z, h := handles.Get()
	z.X = 1
	shared := frogs.SharedPool(s, 2)
	w := shared.Get()
	list, dict := container.NewList(s, frogs, 2), container.NewMap(s, scope.Plain[int64](), frogs, 2)
	text := s.Text()
	return map[string]func() error{
		"scope":        func() error { frogs.New(s); return nil },
		"scope, Err":   s.Err,
		"scope, Close": s.Close,
		"text":         func() error { text.Add("x"); return nil },
		"pool":         func() error { pool.Put(x); return nil },
		"handle pool":  func() error { handles.Put(h); return nil },
		"object pool":  func() error { return objects.Put(y) },
		"shared pool":  func() error { shared.Put(w); return nil },
		"list":         func() error { list.Push(frog{}); return nil },
		"map":          func() error { dict.Set(1, frog{}); return nil },
	}
}

func said(call func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = v.(error)
		}
	}()
	return call()
}

// TestEmptiedByWhom: in each build, the use of an object of an emptied region reports the call that
// emptied the region.
func TestEmptiedByWhom(t *testing.T) {
	b := open(t, rooms(true)) // effects, above four rooms
	room := acquire(t, b)
	for _, c := range []struct {
		by  string
		end func()
	}{
		{"Load of region room 0", func() { mustFill(t, room, 1) }},
		// the second rewind has no objects to empty
		{"Load of region room 0", func() { mustFill(t, room, 2); mustFill(t, room, 3) }},
		{"Rewind of region room 0", func() { require.NoError(t, room.Rewind(background)) }},
		{"Rewind of region effects", func() { require.NoError(t, b.Region("effects").Rewind(background)) }},
		{"Load of region systems", func() { mustLoad(t, b, "systems", nil) }},
		{"Load of region effects", func() { mustLoad(t, b, "effects", nil) }},
		{"Release of region room 0", func() { require.NoError(t, room.Release(background)) }},
	} {
		var stale map[string]func() error
		mustLoad(t, b, "effects", func(s scope.Scope) { stale = inboxes(s) })
		c.end()
		for what, use := range stale {
			err := said(use)
			assert.ErrorIs(t, err, budget.ErrClosed, what)
			assert.Regexp(t, `; region effects was last emptied \d.*s ago, by a `+c.by, fmt.Sprint(err), what)
		}
	}
}

// TestEmptiedBesideItsHolder: a region that holds objects of its sibling stays when the sibling is
// loaded again, and a use of these objects reports the sibling and its load.
func TestEmptiedBesideItsHolder(t *testing.T) {
	b := open(t, budget.Plan{Name: "tiles", Regions: []budget.RegionPlan{{Name: "systems", Size: 64 * budget.KiB},
		{Name: "map", Size: 64 * budget.KiB}, {Name: "styles", Size: 64 * budget.KiB, On: "systems"}}})
	type holder struct{ styles map[string]func() error }
	hold := func() *holder {
		h := &holder{}
		mustLoad(t, b, "styles", func(s scope.Scope) { h.styles = inboxes(s) })
		l, err := budget.Load(background, b.Region("map"), func(scope.Scope) (*holder, error) { return h, nil })
		require.NoError(t, err)
		return l.Get()
	}
	for by, end := range map[string]func(){
		"Load of region styles":    func() { mustLoad(t, b, "styles", nil) },
		"Rewind of region styles":  func() { require.NoError(t, b.Region("styles").Rewind(background)) },
		"Load of region systems":   func() { mustLoad(t, b, "systems", nil) },
		"Rewind of region systems": func() { require.NoError(t, b.Region("systems").Rewind(background)) },
	} {
		held := hold()
		end()
		for what, use := range held.styles {
			err := said(use)
			assert.ErrorIs(t, err, budget.ErrClosed, what)
			assert.Regexp(t, `; region styles was last emptied \d.*s ago, by a `+by, fmt.Sprint(err), what)
		}
	}
	held := hold()
	mustLoad(t, b, "map", nil)
	require.NoError(t, b.Region("map").Rewind(background))
	require.NoError(t, said(held.styles["pool"]), "a load of the holder leaves the objects alone")
}

// TestEmptiedByALoadThatFailed: a failed load is reported for its own objects.
func TestEmptiedByALoadThatFailed(t *testing.T) {
	b := open(t, rooms(true))
	var stale map[string]func() error
	_, err := load(b, "effects", func(s scope.Scope) error { stale = inboxes(s); return errLoader })
	require.ErrorIs(t, err, errLoader)
	for what, use := range stale {
		assert.Regexp(t, `region effects was last emptied .* ago, by a Load of region effects that failed`,
			said(use).Error(), what)
	}
}

// TestClosedByItself: a scope that was opened after the region was emptied, and closed by its
// opener, doesn't report the load.
func TestClosedByItself(t *testing.T) {
	b := open(t, rooms(true))
	mustLoad(t, b, "effects", nil)
	mustLoad(t, b, "effects", func(s scope.Scope) {
		inner := s.Open("inner")
		stale := inboxes(inner)
		require.NoError(t, inner.Close())
		for what, use := range stale {
			assert.NotContains(t, fmt.Sprint(said(use)), "empty", what)
		}
	})
}

// TestEmptiedMeanwhile: any goroutine may get the report during loads.
func TestEmptiedMeanwhile(t *testing.T) {
	b := open(t, rooms(true))
	var stale map[string]func() error
	mustLoad(t, b, "effects", func(s scope.Scope) { stale = inboxes(s) })
	room := acquire(t, b)
	mustFill(t, room, 1)
	var both sync.WaitGroup
	both.Go(func() {
		for range 100 {
			mustLoad(t, b, "effects", nil)
			mustFill(t, room, 1)
		}
	})
	for range 100 {
		// no load writes the words that these read
		for _, what := range []string{"handle pool", "object pool"} {
			assert.ErrorContains(t, said(stale[what]), "region effects was last emptied ")
		}
	}
	both.Wait()
}

// TestClosedWithItsBudget: a load of the next budget, with the same headers, isn't reported for
// objects of the budget before.
func TestClosedWithItsBudget(t *testing.T) {
	first := open(t, fresh(t, rooms(true)))
	var stale map[string]func() error
	mustLoad(t, first, "effects", func(s scope.Scope) { stale = inboxes(s) })
	require.NoError(t, first.Close())
	next := open(t, rooms(true))
	if !arena_c.Race {
		require.Equal(t, first.Base(), next.Base(), "the range is used again")
	}
	for range 2 {
		mustLoad(t, next, "effects", nil)
	}
	for what, use := range stale {
		err := said(use)
		assert.ErrorIs(t, err, budget.ErrClosed, what)
		assert.NotContains(t, fmt.Sprint(err), "last emptied", what)
	}
}

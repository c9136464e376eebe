package record_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/scope"
)

// in returns a program that runs fn in a scope of each kind of arena.
func in(fn func(t testing.TB, s scope.Scope)) func(t testing.TB, b *budget.Budget) {
	return func(t testing.TB, b *budget.Budget) {
		_, _ = budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*int, error) { fn(t, s); return nil, nil })
		_ = b.Scratch(0, 1).Do("work", func(s scope.Scope) error { fn(t, s); return nil })
		_ = b.Frame().Do("work", func(s scope.Scope) error { fn(t, s); return nil })
		_ = b.NextFrame()
	}
}

// TestSamePeaks: for all operations on an arena, the replay has the program's peaks.
func TestSamePeaks(t *testing.T) {
	for name, program := range map[string]func(t testing.TB, b *budget.Budget){
		"nothing": func(testing.TB, *budget.Budget) {},
		"things of odd sizes": in(func(_ testing.TB, s scope.Scope) {
			octets.New(s)
			frogs.Slice(s, 7)
			octets.Slice(s, 0)
			scope.Plain[struct{}]().New(s)
			objects.New(s)
			objects.Slice(s, 3)
			octets.SliceAligned(s, 5, 64)
			s.AllocUnzeroedAs(1, scope.Align64)
		}),
		"lists that grow": in(func(_ testing.TB, s scope.Scope) {
			list := frogs.Append(s, nil, frog{})
			octets.New(s)
			for range 5 {
				list = frogs.Append(s, list, frog{})
			}
		}),
		"pools": in(func(_ testing.TB, s scope.Scope) {
			frogs.HandlePool(s, 9)
			frogs.SharedPool(s, 3).Get()
			inner := s.Open("inner")
			objects.Pool(inner, 2).Get()
			_ = inner.Close()
			frogs.Pool(s, 1)
		}),
		"temporaries": in(func(t testing.TB, s scope.Scope) {
			octets.Slice(s, 3)
			outer := s.Temp(301)
			octets.Slice(outer, 100)
			inner := outer.Temp(33)
			octets.Slice(s, 17)
			octets.Slice(inner, 33)
			require.NoError(t, inner.Close())
			require.NoError(t, outer.Close())
			s.Temp(0)
			octets.Slice(s, 1000)
			s.Open("covers").Temp(70)
		}),
		"temporaries that don't fit": in(func(_ testing.TB, s scope.Scope) {
			_ = s.Do("inner", func(s scope.Scope) error { s.Temp(1 << 20); return nil })
			_ = s.Do("inner", func(s scope.Scope) error { s.Temp(64).Temp(1 << 20); return nil })
			s.Temp(64)
		}),
		"builders": in(func(_ testing.TB, s scope.Scope) {
			octets.New(s)
			list := frogs.Build(s)
			list.Push(frog{})
			list.Done()
			empty := frogs.Build(s)
			empty.Done()
			octets.Slice(s, 100)
			_ = s.Do("inner", func(s scope.Scope) error {
				list := frogs.Build(s)
				for {
					list.Push(frog{})
				}
			})
		}),
		"a builder that a panic abandons": func(t testing.TB, b *budget.Budget) {
			assert.Panics(t, func() {
				_, _ = budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*int, error) {
					list := frogs.Build(s)
					list.Push(frog{})
					panic("loader")
				})
			})
		},
		"constructors that fail": in(func(t testing.TB, s scope.Scope) {
			octets.Slice(s, 11)
			_, err := frogs.Make(s, func(*frog) error {
				octets.Slice(s, 500)
				_, err := objects.Make(s, func(*frog) error {
					s.Temp(200)
					octets.Slice(s, 70)
					inner := s.Open("left open")
					octets.Slice(inner, 20)
					return errLoader
				})
				require.ErrorIs(t, err, errLoader)
				s.Temp(100)
				return errLoader
			})
			require.ErrorIs(t, err, errLoader)
			octets.Slice(s, 85) // ends between a released node and its place
			_ = s.Open("next").Close()
			octets.Slice(s, 300)
			s.Temp(10)
		}),
		"what takes the place of a constructor that failed": in(func(_ testing.TB, s scope.Scope) {
			for size := range 100 { // it ends in the middle of the node that ended the temporaries
				_ = s.Do("inner", func(s scope.Scope) error {
					_, _ = frogs.Make(s, func(*frog) error { octets.Slice(s, 50); s.Temp(1); return errLoader })
					octets.Slice(s, size)
					_ = s.Open("next").Close()
					s.Temp(1)
					return nil
				})
			}
		}),
		"labels": in(func(t testing.TB, s scope.Scope) {
			require.NoError(t, scope.Label(s, "a", func() error {
				octets.Slice(s, 9)
				return scope.Label(s, "b", func() error {
					return scope.Label(s, "a", func() error { octets.New(s); return nil })
				})
			}))
			_ = scope.Label(s, "c", func() error { s.Open("in c"); return nil })
		}),
		"owned values, more than there is room for": in(func(_ testing.TB, s scope.Scope) {
			s.Defer(func() {}).Cancel()
			_ = s.Do("inner", func(s scope.Scope) error {
				for {
					s.Keep(s)
				}
			})
			_ = s.Defer(func() {}).CloseNow()
		}),
		"scopes, more than there is room for": in(func(_ testing.TB, s scope.Scope) {
			var deeper func(s scope.Scope) error
			deeper = func(s scope.Scope) error { return s.Do("deeper", deeper) }
			_ = deeper(s)
		}),
		"pools and labels, more than there is room for": in(func(_ testing.TB, s scope.Scope) {
			_ = s.Do("inner", func(s scope.Scope) error {
				for {
					octets.Pool(s, 1)
				}
			})
			_ = s.Do("inner", func(s scope.Scope) error {
				for {
					_ = scope.Label(s, scope.Sprintf(s, "%d", s.Free()), func() error { return nil })
				}
			})
		}),
		"refusals": func(_ testing.TB, b *budget.Budget) {
			_, _ = budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*int, error) {
				octets.TrySlice(s, 1<<20)
				octets.Slice(s, 70)
				inner := s.Open("inner")
				frogs.TryNew(s)
				octets.Slice(inner, 100)
				return nil, inner.Close()
			})
		},
		"loads in loads": func(t testing.TB, b *budget.Budget) {
			load(t, b.Region("init"), func(s scope.Scope) {
				octets.Slice(s, 100)
				_, err := budget.Load(ctx, b.Region("level").In(s), func(s scope.Scope) (*int, error) {
					octets.Slice(s, 1000)
					return nil, nil
				})
				require.NoError(t, err)
				require.NoError(t, b.Region("level").In(s).Rewind(ctx))
				octets.Slice(s, 100)
			})
			load(t, b.Region("init"), func(scope.Scope) {})
			load(t, b.Region("level"), func(s scope.Scope) { octets.Slice(s, 2000) })
			require.NoError(t, b.Region("init").Rewind(ctx))
		},
		"slots": func(t testing.TB, b *budget.Budget) {
			for size := range 5 {
				room, err := b.Slots("room").Acquire()
				require.NoError(t, err)
				load(t, room, func(s scope.Scope) { octets.Slice(s, 100*size) })
				if size%2 == 0 {
					require.NoError(t, room.Release(ctx))
				}
			}
		},
		"frames": func(t testing.TB, b *budget.Budget) {
			for i := range 10 {
				octets.Slice(b.Frame(), 50*i%130)
				if i%4 == 0 {
					b.Frame().Defer(func() {})
				}
				if i%3 == 0 {
					b.Frame().Open("left open")
				}
				_ = b.NextFrame()
			}
		},
		"scratch that is asked for by number, and on loan": func(t testing.TB, b *budget.Budget) {
			own := b.Scratches(0)
			for i := range 4 {
				lease, err := b.Lease(ctx)
				require.NoError(t, err)
				s := lease.Scratch(1).Open("left open")
				octets.Slice(s, 40*i)
				require.Error(t, lease.Release())
				s = own.Scratch(0).Open("kept")
				octets.Slice(s, 300)
				_ = b.NextFrame()
				octets.Slice(s, 30)
				s.Temp(10)
				_ = s.Close()
			}
		},
		"a timeline, which counts peaks anew": func(t testing.TB, b *budget.Budget) {
			line := timeline.Start(b, 16)
			s := b.Scratch(1, 0).Open("kept")
			for i := range 8 {
				octets.Slice(b.Frame(), 70)
				_ = s.Do("inner", func(s scope.Scope) error { octets.Slice(s, 500-50*i); s.Temp(10); return nil })
				octets.Slice(s, 20)
				_ = b.NextFrame()
				line.Sample()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			holds(t, func(b *budget.Budget, _ *record.Recording) { program(t, b) })
		})
	}
}

// TestPeaksOfBefore: memory in use before the recording counts, released or not.
func TestPeaksOfBefore(t *testing.T) {
	var to lines
	b := open(t, game())
	load(t, b.Region("init"), func(s scope.Scope) { octets.Slice(s, 1000) })
	load(t, b.Region("level"), func(s scope.Scope) { octets.Slice(s, 3000); s.Temp(500) })
	require.NoError(t, b.Region("level").Rewind(ctx))
	_ = b.Scratch(1, 1).Do("over", func(s scope.Scope) error { octets.Slice(s, 700); return nil })
	kept := b.Scratch(0, 0).Open("kept")
	octets.Slice(kept, 100)
	octets.Slice(b.Frame(), 300)
	for range 4 {
		require.NoError(t, b.NextFrame())
	}
	octets.Slice(b.Frame(), 30)
	r, err := record.Start(b, &to)
	require.NoError(t, err)
	octets.Slice(kept, 100)
	require.NoError(t, b.NextFrame())
	load(t, b.Region("level"), func(s scope.Scope) { octets.Slice(s, 50) })
	require.NoError(t, kept.Close())
	require.ErrorContains(t, b.Close(), `"kept"`) // open at NextFrame
	require.NoError(t, r.Close())
	same(t, to.Bytes(), b.Report())

	plan := b.Report().Plan
	plan.Regions[1].Size = 2500
	e := failed(t, plan, &to.Buffer)
	require.ErrorContains(t, e, `region level is full: scope "earlier" asked for`)
}

// TestSiblings: the loads of two regions on one, in any order and at once, are replayed, also in a
// plan in which the one stands on the other.
func TestSiblings(t *testing.T) {
	plan := game()
	plan.Regions = []budget.RegionPlan{{Name: "systems", Size: 1 << 12}, {Name: "map", Size: 1 << 13},
		{Name: "styles", Size: 1 << 13, On: "systems"}, {Name: "room", Size: 1 << 12, Slots: 2}}
	trace, was := recorded(t, plan, func(b *budget.Budget, _ *record.Recording) {
		at := func(name string, bytes int) {
			load(t, b.Region(name), func(s scope.Scope) { octets.Slice(s, bytes) })
		}
		at("systems", 100)
		at("styles", 5000)
		at("map", 3000) // styles stays
		load(t, b.Region("map"), func(s scope.Scope) {
			octets.Slice(s, 200)
			at("styles", 6000)
			octets.Slice(s, 4000)
		})
		room, err := b.Slots("room").Acquire()
		require.NoError(t, err)
		load(t, room, func(s scope.Scope) {
			octets.Slice(s, 70)
			at("map", 10) // the room stays
			octets.Slice(s, 700)
		})
		require.NoError(t, room.Release(ctx))
		at("systems", 50)
	})
	same(t, trace, was)
	read, err := record.Plan(bytes.NewReader(trace))
	require.NoError(t, err)
	assert.Equal(t, "systems", read.Regions[2].On)
	was.Plan.Regions[2].On = ""
	same(t, trace, was)
}

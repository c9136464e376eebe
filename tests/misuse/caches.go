package main

import (
	"context"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
)

// Use of a cache.

type frogCache = cache.Of[uint64, Frog]

func newCache(s scope.Scope, n int) *frogCache { return cache.New(s, words, frogs, n) }

func hatch(context.Context, *Frog) error { return nil }

// cached loads a cache of two frogs with one frog in it, pinned.
func cached() (*frogCache, *Frog) {
	c := load(open(), "level", func(s scope.Scope) *frogCache { return newCache(s, 2) }).Get()
	return c, made(c.GetOrLoad(ctx, 1, hatch))
}

var caches = []line{
	{"Unpin of a value that isn't pinned, or of another cache; Handle of one; load without a function", []program{
		{name: "Unpin twice", says: "isn't pinned", run: func(wrong bool) {
			c, frog := cached()
			c.Unpin(frog)
			if wrong {
				c.Unpin(frog)
			}
		}},
		{name: "Unpin of another cache's value", says: "isn't a value of this cache", run: func(wrong bool) {
			c, frog := cached()
			if wrong {
				_, frog = cached()
			}
			c.Unpin(frog)
		}},
		{name: "Handle of a value that isn't pinned", says: "isn't pinned", run: func(wrong bool) {
			c, frog := cached()
			if wrong {
				c.Unpin(frog)
			}
			c.Handle(frog)
		}},
		{name: "GetOrLoad without a function", says: "without a function", run: func(wrong bool) {
			c, _ := cached()
			fn := hatch
			if wrong {
				fn = nil
			}
			made(c.GetOrLoad(ctx, 2, fn))
		}},
		{name: "Resize to more than planned", says: "from 1 to the 2", run: func(wrong bool) {
			c, _ := cached()
			to := 2
			if wrong {
				to = 3
			}
			check(c.Resize(to))
		}},
	}, []answer{
		{every, "cache", "scope: BUG: …", panics},
	}, ""},
	{"use a cache, or Unpin its value, after its scope closed", []program{
		{name: "GetOrLoad from a stale cache", run: stale(func(c *frogCache, _ *Frog) {
			made(c.GetOrLoad(ctx, 2, hatch))
		})},
		{name: "Add to a stale cache", run: stale(func(c *frogCache, _ *Frog) { made(c.Add(2)) })},
		{name: "Unpin of a stale cache's value", run: stale(func(c *frogCache, frog *Frog) { c.Unpin(frog) })},
		{name: "Resize of a stale cache", run: stale(func(c *frogCache, _ *Frog) { check(c.Resize(2)) })},
	}, []answer{
		{every, "generation", "scope: BUG: … of a cache in a closed scope", panics},
	}, ""},
	{"ask a cache after its scope closed", []program{
		{name: "Get from a stale cache", run: stale(func(c *frogCache, _ *Frog) { nothing(c.Get(1) == nil) })},
		{name: "Len of a stale cache", run: stale(func(c *frogCache, _ *Frog) { nothing(c.Len() == 0) })},
	}, []answer{
		{every, "generation", "nothing is there", told},
	}, ""},
	{"wait in a loader for the load itself; pin all values", []program{
		{name: "a loader that loads its own key", says: "would wait for itself", run: func(wrong bool) {
			c, _ := cached()
			made(c.GetOrLoad(ctx, 2, func(ctx context.Context, _ *Frog) error {
				key := uint64(1)
				if wrong {
					key = 2
				}
				_, err := c.GetOrLoad(ctx, key, hatch)
				return err
			}))
		}},
		{name: "pin all values of a cache", says: "2 of 2 values of main.Frog pinned", run: func(wrong bool) {
			c, _ := cached()
			frog := made(c.Add(2))
			if !wrong {
				c.Unpin(frog)
			}
			made(c.Add(3))
		}},
	}, []answer{
		{every, "cache", "cache", told},
	}, ""},
	{"use a value of a cache after its last Unpin", []program{
		{name: "read a frog that was evicted", run: func(wrong bool) {
			c, frog := cached()
			frog.Age = 7
			if wrong {
				c.Unpin(frog)
				check(c.Delete(1))
			}
			say("the frog's age is %#x", frog.Age)
		}, goesOn: "is 0x7"},
	}, []answer{
		{"asan", "poison", poison, asanEnd},
		{"race, checked", "fill", "is 0xdbdbdbdbdbdbdbdb", goneOn},
	}, ""},
}

// stale is a program that uses a cache, which it does wrong after the scope closed.
func stale(use func(c *frogCache, frog *Frog)) func(wrong bool) {
	return func(wrong bool) {
		var c *frogCache
		var frog *Frog
		query := open().Scratch(0, 0).Open("query")
		c = newCache(query, 2)
		frog = made(c.GetOrLoad(ctx, 1, hatch))
		when(wrong, query.Close)
		use(c, frog)
	}
}

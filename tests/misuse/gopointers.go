//upfront:keeps the programs commit misuse on purpose

package main

import (
	"errors"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
	"unsafe"
	"weak"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// Go pointers in memory that the collector doesn't scan.

var goPointers = []line{
	{"a type with Go pointers in an arena", []program{
		{name: "Plain of a type with a string", run: func(wrong bool) {
			if wrong {
				scope.Plain[Named]()
			}
		}},
		{name: "Object of a type with a string", run: func(wrong bool) {
			if wrong {
				scope.Object(func(*Named) error { return nil })
			}
		}},
		{name: "HeapOf a type with a string", run: func(wrong bool) {
			if wrong {
				arena.HeapOf[Named](nil)
			}
		}},
		{name: "NewPool of a type with a string", status: told, run: func(wrong bool) {
			if wrong {
				_, err := arena.NewBlockPool[Named](arena.NewBlock(4096, 64))
				check(err)
			}
		}},
	}, []answer{
		{every, "type", "Named.Name (string) holds a Go pointer; use arena.String", panics},
	}, ""},
	{"a Go pointer stored through a raw block", []program{
		{name: "a Go pointer in a raw block", goesOn: "the collector took it", run: func(wrong bool) {
			b := open()
			var gone weak.Pointer[Frog]
			load(b, "level", func(s scope.Scope) *Frog {
				frog := new(Frog)
				gone = weak.Make(frog)
				if wrong {
					*(**Frog)(s.AllocUnzeroed(8, 8)) = frog
				} else {
					s.Keep(frog)
				}
				return nil
			})
			runtime.GC()
			if gone.Value() == nil {
				say("the collector took it")
			}
			check(b.Close())
		}},
	}, []answer{
		{"cgocheck2", "runtime", "fatal error: … Go pointer stored into non-Go memory", panics},
	}, ""},
	{"built-in append beyond cap", []program{
		{name: "append beyond cap", run: appendBeyondCap,
			goesOn: "the list is on the scratch: false", right: "the list is on the scratch: true"},
	}, []answer{
		{"checked", "SealStrict", "BUG: Strict", panics},
	}, ""},
	{"a scope's string kept as a map's key, in an error or log record", []program{
		{name: "a scope's string as a key", goesOn: "found: ", right: "found: true", run: func(wrong bool) {
			b := open()
			numbers := make(map[string]int)
			load(b, "level", func(s scope.Scope) *Frog {
				numbers[clone(wrong, scope.Sprintf(s, "frog %d", 1))] = 1
				return nil
			})
			load(b, "level", func(s scope.Scope) *Frog {
				scope.Sprintf(s, "toad %d", 1)
				return nil
			})
			_, found := numbers["frog 1"]
			// asan doesn't see the runtime's comparisons.
			say("found: %v, of %v", found, slices.Collect(maps.Keys(numbers)))
			check(b.Close())
		}},
		{name: "a scope's string as an error", goesOn: "toad 1 is missing", right: "frog 1 is missing",
			run: func(wrong bool) {
				b := open()
				_, err := budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*Frog, error) {
					return nil, errors.New(clone(wrong, scope.Sprintf(s, "frog %d is missing", 1)))
				})
				load(b, "level", func(s scope.Scope) *Frog {
					scope.Sprintf(s, "toad %d is missing", 1)
					return nil
				})
				say("%v", err)
				check(b.Close())
			}},
		{name: "a scope's string in a log record", goesOn: "toad 1 is missing", right: "frog 1 is missing",
			run: func(wrong bool) {
				b := open()
				records := make(chan slog.Record, 1)
				load(b, "level", func(s scope.Scope) *Frog {
					records <- slog.NewRecord(time.Time{}, slog.LevelInfo,
						clone(wrong, scope.Sprintf(s, "frog %d is missing", 1)), 0)
					return nil
				})
				load(b, "level", func(s scope.Scope) *Frog {
					scope.Sprintf(s, "toad %d is missing", 1)
					return nil
				})
				say("%s", (<-records).Message)
				check(b.Close())
			}},
	}, []answer{
		{"asan", "ASan", poison, asanEnd},
		{"checked", "no access", ofRewound, panics},
	}, ""},
}

type Named struct{ Name string }

func appendBeyondCap(wrong bool) {
	b := open()
	check(b.SealStrict())
	check(b.NextFrame())
	query := b.Scratch(0, 0).Open("query")
	near := uintptr(unsafe.Pointer(frogs.New(query)))
	list := frogs.SliceCap(query, 0, 10)
	for range 11 {
		if wrong {
			list = append(list, Frog{})
		} else {
			list = frogs.Append(query, list, Frog{})
		}
	}
	onScratch := uintptr(unsafe.Pointer(&list[0]))-near < 64*budget.KiB
	check(query.Close())
	check(b.NextFrame())
	say("the list is on the scratch: %v", onScratch)
	check(b.Close())
}

func clone(wrong bool, text string) string {
	if wrong {
		return text
	}
	return strings.Clone(text)
}

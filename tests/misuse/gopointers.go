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

// What the collector sees, and what lies where it doesn't look.

var goPointers = []line{
	{"a type with Go pointers in an arena", []program{
		{name: "Plain of a type with a string", run: plainWithString},
		{name: "Object of a type with a string", run: objectWithString},
		{name: "HeapOf a type with a string", run: heapOfString},
		{name: "NewPool of a type with a string", run: newPoolOfString, status: told},
	}, []answer{
		{every, "type", "Named.Name (string) holds a Go pointer; use arena.String", panics},
	}, ""},
	{"a Go pointer stored through a raw block", []program{
		{name: "a Go pointer in a raw block", run: goPointerInBlock, goesOn: "the collector took it"},
	}, []answer{
		{"cgocheck2", "runtime", "fatal error: … Go pointer stored into non-Go memory", panics},
	}, ""},
	{"built-in append beyond cap", []program{
		{name: "append beyond cap", run: appendBeyondCap,
			goesOn: "the list lies on the scratch: false", right: "the list lies on the scratch: true"},
	}, []answer{
		{"checked", "Seal(Strict)", "BUG: Strict", panics},
	}, ""},
	{"a scope's string kept as a map's key, in an error or log record", []program{
		{name: "a scope's string as a key", run: stringAsKey, goesOn: "found: ", right: "found: true"},
		{name: "a scope's string as an error", run: stringAsError, goesOn: "toad 1 is missing", right: "frog 1 is missing"},
		{name: "a scope's string in a log record", run: stringInRecord, goesOn: "toad 1 is missing", right: "frog 1 is missing"},
	}, []answer{
		{"asan", "ASan", poison, asanEnd},
		{"checked", "no access", ofRewound, panics},
	}, ""},
}

type Named struct{ Name string }

func plainWithString(wrong bool) {
	if wrong {
		scope.Plain[Named]()
	}
}

func objectWithString(wrong bool) {
	if wrong {
		scope.Object(func(*Named) error { return nil })
	}
}

func heapOfString(wrong bool) {
	if wrong {
		arena.HeapOf[Named](nil)
	}
}

func newPoolOfString(wrong bool) {
	if wrong {
		_, err := arena.NewPool[Named](arena.NewBlock(4096, 64))
		check(err)
	}
}

func goPointerInBlock(wrong bool) {
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
}

func appendBeyondCap(wrong bool) {
	b := open()
	check(b.Seal(budget.Strict))
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
	say("the list lies on the scratch: %v", onScratch)
	check(b.Close())
}

func clone(wrong bool, text string) string {
	if wrong {
		return text
	}
	return strings.Clone(text)
}

func stringAsKey(wrong bool) {
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
	say("found: %v, of %v", found, slices.Collect(maps.Keys(numbers))) // asan doesn't see what the runtime compares
	check(b.Close())
}

func stringAsError(wrong bool) {
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
}

func stringInRecord(wrong bool) {
	b := open()
	records := make(chan slog.Record, 1)
	load(b, "level", func(s scope.Scope) *Frog {
		records <- slog.NewRecord(time.Time{}, slog.LevelInfo, clone(wrong, scope.Sprintf(s, "frog %d is missing", 1)), 0)
		return nil
	})
	load(b, "level", func(s scope.Scope) *Frog {
		scope.Sprintf(s, "toad %d is missing", 1)
		return nil
	})
	say("%s", (<-records).Message)
	check(b.Close())
}

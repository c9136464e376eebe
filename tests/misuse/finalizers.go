package main

import (
	"errors"
	"os"

	"github.com/upfront-mem/upfront/tests/misuse/caller"
)

var finalizers = []line{
	{"a finalizer fails, panics, allocates in its scope, or leaves one open", []program{
		{name: "a finalizer fails", run: func(wrong bool) {
			b := open()
			query := b.Scratch(0, 0).Open("query")
			query.Own(file{func() error {
				if wrong {
					return errors.New("the file is busy")
				}
				return nil
			}})
			check(query.Close())
			check(b.Close())
		}},
		{name: "a finalizer panics", says: "panicked: invalid argument", run: func(wrong bool) {
			b := open()
			query := b.Scratch(0, 0).Open("query")
			query.Defer(func() {
				if wrong {
					panic(os.ErrInvalid)
				}
			})
			check(query.Close())
			check(b.Close())
		}},
		{name: "a finalizer allocates in its scope", says: "while its finalizers run", run: func(wrong bool) {
			b := open()
			query, beside := b.Scratch(0, 0).Open("query"), b.Scratch(0, 1).Open("beside")
			query.Defer(func() {
				place := beside
				if wrong {
					place = query
				}
				frogs.New(place)
			})
			check(query.Close())
			check(beside.Close())
			check(b.Close())
		}},
		{name: "a finalizer leaves a scope open", run: func(wrong bool) {
			b := open()
			query := b.Scratch(0, 0).Open("query")
			query.Defer(func() {
				beside := b.Scratch(0, 1).Open("beside")
				if !wrong {
					check(beside.Close())
				}
			})
			check(query.Close())
			check(b.Close())
		}},
	}, []answer{
		{every, "count", "panicked / the file is busy / left open", told},
	}, ""},
	{"a C finalizer leaks what malloc gave", []program{
		{name: "a C finalizer leaks", run: func(wrong bool) {
			b := open()
			query := b.Scratch(0, 0).Open("query")
			if wrong {
				caller.DeferLeak(query.C())
			}
			check(query.Close())
			check(b.Close())
		}},
	}, []answer{
		{"asan", "ASan", "LeakSanitizer: detected memory leaks … caller_leak", asanEnd},
	}, ""},
}

type file struct{ close func() error }

func (f file) Close() error { return f.close() }

package main

import (
	"errors"
	"os"

	"github.com/upfront-mem/upfront/tests/misuse/caller"
)

var finalizers = []line{
	{"a finalizer fails, panics, allocates in its scope, or leaves one open", []program{
		{name: "a finalizer fails", run: func(wrong bool) {
			b, query := openQuery()
			query.Own(file{func() error {
				if wrong {
					return errors.New("the file is busy")
				}
				return nil
			}})
			closeAll(query, b)
		}},
		{name: "a finalizer panics", says: "panicked: invalid argument", run: func(wrong bool) {
			b, query := openQuery()
			query.Defer(func() {
				if wrong {
					panic(os.ErrInvalid)
				}
			})
			closeAll(query, b)
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
			closeAll(query, beside, b)
		}},
		{name: "a finalizer leaves a scope open", run: func(wrong bool) {
			b, query := openQuery()
			query.Defer(func() {
				beside := b.Scratch(0, 1).Open("beside")
				when(!wrong, beside.Close)
			})
			closeAll(query, b)
		}},
	}, []answer{
		{every, "count", "panicked / the file is busy / left open", told},
	}, ""},
	{"a C finalizer leaks memory of malloc", []program{
		{name: "a C finalizer leaks", run: func(wrong bool) {
			b, query := openQuery()
			if wrong {
				caller.DeferLeak(query.C())
			}
			closeAll(query, b)
		}},
	}, []answer{
		{"asan", "ASan", "LeakSanitizer: detected memory leaks … caller_leak", asanEnd},
	}, ""},
}

type file struct{ close func() error }

func (f file) Close() error { return f.close() }

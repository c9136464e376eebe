package main

import (
	"errors"
	"os"

	"github.com/upfront-mem/upfront/tests/misuse/caller"
)

var finalizers = []line{
	{"a finalizer fails, panics, allocates in its scope, or leaves one open", []program{
		{name: "a finalizer fails", run: finalizerFails},
		{name: "a finalizer panics", run: finalizerPanics, says: "panicked: invalid argument"},
		{name: "a finalizer allocates in its scope", run: finalizerAllocates, says: "while its finalizers run"},
		{name: "a finalizer leaves a scope open", run: finalizerLeavesOpen},
	}, []answer{
		{every, "count", "panicked / the file is busy / left open", told},
	}, ""},
	{"a C finalizer leaks what malloc gave", []program{
		{name: "a C finalizer leaks", run: finalizerOfCLeaks},
	}, []answer{
		{"asan", "ASan", "LeakSanitizer: detected memory leaks … caller_leak", asanEnd},
	}, ""},
}

type file struct{ close func() error }

func (f file) Close() error { return f.close() }

func finalizerFails(wrong bool) {
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
}

func finalizerPanics(wrong bool) {
	b := open()
	query := b.Scratch(0, 0).Open("query")
	query.Defer(func() {
		if wrong {
			panic(os.ErrInvalid)
		}
	})
	check(query.Close())
	check(b.Close())
}

func finalizerAllocates(wrong bool) {
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
}

func finalizerLeavesOpen(wrong bool) {
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
}

func finalizerOfCLeaks(wrong bool) {
	b := open()
	query := b.Scratch(0, 0).Open("query")
	if wrong {
		caller.DeferLeak(query.C())
	}
	check(query.Close())
	check(b.Close())
}

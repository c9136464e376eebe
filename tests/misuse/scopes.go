package main

import (
	"errors"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

var scopes = []line{
	{"close scopes out of order, twice, or from their own finalizers", []program{
		{name: "Close out of order", run: closeOutOfOrder},
		{name: "Close twice", run: closeTwice},
		{name: "Close of a slot's next scope", run: closeAnothers},
		{name: "Close from a finalizer", run: closeFromFinalizer},
		{name: "Close of a region's scope", run: closeTheRegions},
	}, []answer{
		{every, "order", "scope: BUG: Close of … scope", told},
	}, ""},
	{"allocate in a covered, closed or frozen scope, by an undeclared Maker, with a bad align", []program{
		{name: "New while covered", run: newWhileCovered, says: `while scope "step", opened in it, is open`},
		{name: "New in older temporaries", run: newInOlderTemporaries, says: "which isn't the newest of the temporaries"},
		{name: "New after Close", run: newAfterClose, says: "that is closed"},
		{name: "New in a slot's next scope", run: newInAnothers, says: "that is closed"},
		{name: "New after the load", run: newAfterLoad, says: "frozen since its load returned"},
		{name: "New after NextFrame", run: newAfterNextFrame, says: "frozen since its frame ended"},
		{name: "New of the zero Maker", run: zeroMaker, says: "a Maker that was never declared"},
		{name: "Alloc with a bad align", run: badAlign, says: "an align is a power of two"},
	}, []answer{
		{every, "generation", "scope: BUG: …", panics},
	}, ""},
	{"leave a scope open; never release scratch or a slot", []program{
		{name: "leave a scope open in a load", run: leaveOpenInLoad},
		{name: "leave a scope open on the frame", run: leaveOpenOnFrame},
		{name: "leave a scope open on a scratch", run: leaveOpenOnScratch},
		{name: "leave a scratch's scope open in a load that fails", run: leaveOpenInFailure},
		{name: "leave a scope open on leased scratch", run: leaveOpenOnLent},
		{name: "never release scratch", run: keepScratch},
		{name: "never release a slot", run: keepSlot},
	}, []answer{
		{every, "count", "left open / never given back / never released", told},
	}, ""},
}

func closeOutOfOrder(wrong bool) {
	query := open().Scratch(0, 0).Open("query")
	step := query.Open("step")
	if wrong {
		check(query.Close())
	}
	check(step.Close())
}

func closeTwice(wrong bool) {
	query := open().Scratch(0, 0).Open("query")
	check(query.Close())
	if wrong {
		check(query.Close())
	}
}

func closeAnothers(wrong bool) {
	scratch := open().Scratch(0, 0)
	query := scratch.Open("query")
	check(query.Close())
	next := scratch.Open("next")
	if wrong {
		next = query
	}
	check(next.Close())
}

func closeFromFinalizer(wrong bool) {
	query := open().Scratch(0, 0).Open("query")
	query.Defer(func() {
		if wrong {
			check(query.Close())
		}
	})
	check(query.Close())
}

func closeTheRegions(wrong bool) {
	load(open(), "level", func(s scope.Scope) *Frog {
		if wrong {
			check(s.Close())
		}
		return nil
	})
}

func newWhileCovered(wrong bool) {
	query := open().Scratch(0, 0).Open("query")
	step := query.Open("step")
	if !wrong {
		check(step.Close())
	}
	frogs.New(query)
}

func newInOlderTemporaries(wrong bool) {
	query := open().Scratch(0, 0).Open("query")
	older := query.Temp(64)
	newer := query.Temp(64)
	if !wrong {
		check(newer.Close())
	}
	frogs.New(older)
}

func newAfterClose(wrong bool) {
	query := open().Scratch(0, 0).Open("query")
	if wrong {
		check(query.Close())
	}
	frogs.New(query)
}

func newInAnothers(wrong bool) {
	scratch := open().Scratch(0, 0)
	query := scratch.Open("query")
	if wrong {
		check(query.Close())
		scratch.Open("next")
	}
	frogs.New(query)
}

func newAfterLoad(wrong bool) {
	b := open()
	var level scope.Scope
	load(b, "level", func(s scope.Scope) *Frog {
		level = s
		return nil
	})
	if !wrong {
		level = b.Scratch(0, 0).Open("query")
	}
	frogs.New(level)
}

func newAfterNextFrame(wrong bool) {
	b := open()
	frame := b.Frame()
	check(b.NextFrame())
	if !wrong {
		frame = b.Frame()
	}
	frogs.New(frame)
}

func zeroMaker(wrong bool) {
	maker := frogs
	if wrong {
		maker = scope.Maker[Frog]{}
	}
	maker.New(open().Scratch(0, 0).Open("query"))
}

func badAlign(wrong bool) {
	align := uint64(16)
	if wrong {
		align = 12
	}
	open().Scratch(0, 0).Open("query").AllocUnzeroed(8, align)
}

func leaveOpenInLoad(wrong bool) {
	load(open(), "level", func(s scope.Scope) *Frog {
		room := s.Open("room")
		if !wrong {
			check(room.Close())
		}
		return nil
	})
}

func leaveOpenOnFrame(wrong bool) {
	b := open()
	room := b.Frame().Open("room")
	if !wrong {
		check(room.Close())
	}
	check(b.NextFrame())
	check(b.NextFrame())
	check(b.Close())
}

func leaveOpenOnScratch(wrong bool) {
	b := open()
	query := b.Scratch(0, 0).Open("query")
	if !wrong {
		check(query.Close())
	}
	check(b.Close())
}

func leaveOpenInFailure(wrong bool) {
	b := open()
	failed := errors.New("the file is broken")
	read := func(scope.Scope) error { return failed }
	_, err := budget.Load(ctx, b.Region("level"), func(scope.Scope) (*Frog, error) {
		if !wrong {
			return nil, b.Scratch(0, 0).Do("file", read)
		}
		file := b.Scratch(0, 0).Open("file")
		if err := read(file); err != nil {
			return nil, err
		}
		return nil, file.Close()
	})
	ask(errors.Is(err, failed), "another error")
	check(b.Close())
}

func leaveOpenOnLent(wrong bool) {
	scratches, err := open().Lease(ctx)
	check(err)
	query := scratches.Scratch(0).Open("query")
	if !wrong {
		check(query.Close())
	}
	check(scratches.Release())
}

func keepScratch(wrong bool) {
	b := open()
	scratches, err := b.Lease(ctx)
	check(err)
	if !wrong {
		check(scratches.Release())
	}
	check(b.Close())
}

func keepSlot(wrong bool) {
	plan := pondPlan
	plan.Regions = []budget.Region{{Name: "room", Size: budget.KiB, Slots: 2}}
	b, err := budget.Open(plan)
	check(err)
	room, err := b.Slots("room").Acquire()
	check(err)
	if !wrong {
		check(room.Release(ctx))
	}
	check(b.Close())
}

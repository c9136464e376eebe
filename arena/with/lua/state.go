package lua

// #cgo pkg-config: lua5.4
// #include "state.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/cgo"
	"sync/atomic"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// Plan is what a state is given.
type Plan struct {
	Name string // for messages
	Size uint64 // bytes of its heap: some 25 KiB are Lua's libraries

	// Steps is how many instructions each call may take, counted by the hundred; 0: any number. To count
	// takes up to as long as to run them.
	Steps int64
}

// State is a Lua state in a scope. One goroutine at a time uses it, and a Go function that it calls
// doesn't. When its scope closes it is closed first; a script that runs in another goroutine then is
// waited for, and one that runs in this one, whose Go function closes the scope, ends there. The zero
// State is refused.
type State struct {
	plan      Plan
	word      atomic.Uint32
	c         *C.upfront_lua // beside the heap, in the scope
	heap      arena.Heap
	handle    cgo.Handle // by which C knows it
	functions []Func
	pins      runtime.Pinner // strings that C reads
	cause     error          // what a Go function gave last
}

// The states of the word.
const (
	zero uint32 = iota
	idle
	running // C is in the heap
	calling // a Go function has been called, and nobody is
	closed
	lost // a Go function ended its goroutine, with Lua's frames
)

// ErrSteps is what errors.Is finds when a script took more steps than there may be.
var ErrSteps = errors.New("too many steps")

// beside is what lies beside the heap.
type beside [(C.sizeof_upfront_lua + 7) / 8]uint64

var besides = scope.Plain[beside]()

// parked is what package arena says of a C library's heap.
const parked = 256

// New makes a state in s: a heap of plan.Size bytes, some 500 bytes beside it, and a place in the
// table of limits.owned. A Size that is too small for Lua and its libraries is an error that is
// scope.ErrFull, and what was taken of s is free again; a full s unwinds, as Maker.New does. Cost:
// some 20 µs.
func New(s scope.Scope, plan Plan) (*State, error) {
	return open(s, plan, unsafe.Pointer(C.github_com_upfront_mem_upfront_heap_hook))
}

// open takes the allocator, a lua_Alloc, so that tests can compare it with Lua's own.
func open(s scope.Scope, plan Plan, allocate unsafe.Pointer) (*State, error) {
	l := &State{plan: plan}
	_, err := besides.Make(s, func(b *beside) error {
		block := s.BytesUnzeroed(int(min(plan.Size, math.MaxInt)), 64)
		heap, err := arena.NewHeap(block, parked)
		if err != nil {
			return l.full(err.Error())
		}
		l.heap, l.c = heap, (*C.upfront_lua)(unsafe.Pointer(b))
		l.handle = cgo.NewHandle(l)
		l.c.handle, l.c.steps = C.uintptr_t(l.handle), C.int64_t(plan.Steps)
		l.word.Store(idle)
		s.Own((*ended)(l))
		header := unsafe.Pointer(unsafe.SliceData(block)) // a heap's lies in front
		if C.upfront_lua_new(l.c, C.lua_Alloc(allocate), header) == 0 {
			return l.full("no room for a state")
		}
		return l.do(C.UPFRONT_LUA_OPEN, "")
	})
	if err != nil {
		return nil, l.named(err)
	}
	return l, nil
}

// Run runs a chunk of source text; what it returns is dropped. Its name stands before the line in
// messages. The source isn't needed afterwards.
func (l *State) Run(name, source string) error {
	return l.within(func() error { return l.do(C.UPFRONT_LUA_RUN, name, source) })
}

// Call calls a global function, and gives what it returns: bool, int64, float64, string or nil. An
// argument may also be any integer or float of Go; a uint64 goes as the int64 of its bits. Cost: some
// 300 ns, the script, and a Go allocation for the results, and for most of them.
func (l *State) Call(function string, args ...any) (results []any, err error) {
	err = l.within(func() error {
		if err := l.do(C.UPFRONT_LUA_CALL, function, args...); err != nil {
			return err
		}
		results, err = l.values()
		return err
	})
	return results, err
}

// Get is the value of a global variable; see Call.
func (l *State) Get(name string) (value any, err error) {
	err = l.within(func() error {
		if err := l.do(C.UPFRONT_LUA_GET, name); err != nil {
			return err
		}
		value, err = l.value(0)
		return err
	})
	return value, err
}

// Set gives a global variable a value; see Call.
func (l *State) Set(name string, value any) error {
	return l.within(func() error { return l.do(C.UPFRONT_LUA_SET, name, value) })
}

// Func is a function of Go's that scripts call. Its error, or panic, is an error in the script, as
// error(text) makes one; when the script doesn't catch it, the call from Go ends with it. It may not
// use the state.
type Func func(args []any) (results []any, err error)

// Func gives a global variable a function. It is held as long as the state.
func (l *State) Func(name string, fn Func) error {
	if fn == nil {
		return fmt.Errorf("lua: BUG: state %q: Func %q of nil", l.plan.Name, name)
	}
	return l.within(func() error {
		l.functions = append(l.functions, fn)
		return l.do(C.UPFRONT_LUA_FUNCTION, name, len(l.functions)-1)
	})
}

// Stats are the figures of the heap: Peak says what Size would have done. They are zero when the
// state runs or is closed.
func (l *State) Stats() (stats arena.HeapStats) {
	_ = l.within(func() error {
		stats = l.heap.Stats()
		return nil
	})
	return stats
}

// within runs fn while nobody else uses the state.
func (l *State) within(fn func() error) error {
	if !l.word.CompareAndSwap(idle, running) {
		return l.refused()
	}
	defer l.leave()
	return l.named(fn())
}

// named is an error with the state's name, or nil.
func (l *State) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("lua: state %q: %w", l.plan.Name, err)
}

func (l *State) leave() {
	l.pins.Unpin()
	l.word.CompareAndSwap(running, idle) // it may have closed, or be lost
}

// refused says what the word says.
func (l *State) refused() error {
	switch l.word.Load() {
	case zero:
		return errors.New("lua: BUG: a zero State: New makes one")
	case closed:
		return fmt.Errorf("lua: BUG: state %q, whose scope has closed: %w", l.plan.Name, scope.ErrClosed)
	case lost:
		return fmt.Errorf("lua: BUG: state %q, whose script was left where a Go function ended its goroutine",
			l.plan.Name)
	}
	return fmt.Errorf("lua: BUG: state %q is used while it runs: one goroutine at a time uses it, and a "+
		"Go function that it calls doesn't", l.plan.Name)
}

// do has C do it, whatever it is, with a name and values.
func (l *State) do(what C.int, name string, values ...any) error {
	l.setText(&l.c.values[0], name)
	if err := l.put(l.c.values[1:], values); err != nil {
		return err
	}
	return l.enter(what, 1+len(values))
}

// enter is do when the values lie there.
func (l *State) enter(what C.int, count int) error {
	l.cause = nil
	code := C.upfront_lua_do(l.c, what, C.int(count))
	if code == C.UPFRONT_LUA_GONE {
		return l.refused()
	}
	if code == C.LUA_OK && l.c.stopped == 0 {
		return nil
	}
	if l.c.stopped != 0 {
		return fmt.Errorf("%w: %s: raise Steps in its lua.Plan, which is %d", ErrSteps,
			C.GoString(&l.c.at[0]), l.plan.Steps)
	}
	words := l.words()
	switch {
	case code == C.LUA_ERRMEM:
		return l.full(words)
	case l.c.raised != 0 && l.cause != nil:
		return &raised{words, l.cause}
	}
	return errors.New(words)
}

// full is an answer: the state goes on.
func (l *State) full(words string) error {
	return fmt.Errorf("%w: %s: raise Size in its lua.Plan, which is %d", scope.ErrFull, words, l.plan.Size)
}

// raised is the error of a Go function as it came out of Lua.
type raised struct {
	text  string
	cause error
}

func (e *raised) Error() string { return e.text }
func (e *raised) Unwrap() error { return e.cause }

// ended is a state whose scope closes.
type ended State

// Close closes the state, unless there is one of its own Go functions on the way back to it: that one
// finds that it is closed, and the memory goes with all that is in it. C in another goroutine is
// waited for.
func (e *ended) Close() error {
	l := (*State)(e)
	for {
		switch {
		case l.word.CompareAndSwap(idle, closed):
			return l.close()
		case l.word.CompareAndSwap(calling, closed):
			l.handle.Delete()
			l.heap.MayLive()
			return fmt.Errorf("lua: BUG: the scope of state %q closes while a Go function that it called runs",
				l.plan.Name)
		case l.word.CompareAndSwap(lost, closed):
			l.handle.Delete()
			l.heap.MayLive()
			return nil
		}
		runtime.Gosched()
	}
}

func (l *State) close() error {
	l.handle.Delete()
	if l.c.state != nil {
		C.lua_close(l.c.state)
	}
	if live := l.heap.Stats().Live; live != 0 {
		l.heap.MayLive() // this error says it
		return fmt.Errorf("lua: BUG: state %q has closed, and %d blocks are live", l.plan.Name, live)
	}
	return nil
}

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

// Plan describes a state.
type Plan struct {
	Name string // for errors
	Size uint64 // of its heap in bytes: Lua's libraries take some 25 KiB

	// Steps limits the instructions of each call, counted in hundreds; 0 is no limit. Counting can
	// double the time of a script.
	Steps int64
}

// State is a Lua state in a scope. One goroutine at a time may use a State, and a Go function that
// the State calls may not use it. The scope closes the State before it frees the memory, and first
// waits while Lua runs in another goroutine. If the scope closes while a Go function of the State
// runs, the script ends when that function returns, and the scope's Close returns an error. The
// zero State isn't usable.
type State struct {
	plan      Plan
	word      atomic.Uint32
	c         *C.upfront_lua // next to the heap, in the scope
	heap      arena.Heap
	handle    cgo.Handle // C's name for the State
	functions []Func
	pins      runtime.Pinner // strings that C reads
	cause     error          // the last error of a Go function
}

// The states of word.
const (
	zero uint32 = iota
	idle
	running // C is in the heap
	calling // a Go function runs, and C is outside
	closed
	lost // a Go function ended its goroutine, and Lua's frames with it
)

// ErrSteps is the error of a call that took more steps than Plan.Steps allows.
var ErrSteps = errors.New("too many steps")

// C's data is next to the heap, not in it.
type beside [(C.sizeof_upfront_lua + 7) / 8]uint64

var besides = scope.Plain[beside]()

// parked is the number of parked blocks that package arena recommends for a C library.
const parked = 256

// New makes a state in s: a heap of plan.Size bytes, some 560 other bytes, and an entry in the
// table of limits.owned. If Size is too small for Lua and its libraries, New frees its memory and
// returns an error that wraps scope.ErrFull. If s has no room, New unwinds. Cost: some 20 µs.
func New(s scope.Scope, plan Plan) (*State, error) {
	return open(s, plan, unsafe.Pointer(C.github_com_upfront_mem_upfront_heap_hook))
}

// open takes the lua_Alloc, so that tests can compare the heap with Lua's own.
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
		header := unsafe.Pointer(unsafe.SliceData(block)) // a heap's header is in front
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

// Run runs a chunk of source text and drops its results. The texts of most of Lua's errors begin
// with the name and the line. The source isn't needed after Run returns.
func (l *State) Run(name, source string) error {
	return l.within(func() error { return l.do(C.UPFRONT_LUA_RUN, name, source) })
}

// Call calls a global function and returns its results: bool, int64, float64, string or nil. An
// argument may be of any integer or float type; a uint64 becomes the int64 with its bits. Cost:
// some 300 ns, the script, a Go allocation for the slice of results, and one for most results.
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

// Get returns the value of a global variable; see Call for the value's type.
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

// Set sets a global variable; see Call for the value's type.
func (l *State) Set(name string, value any) error {
	return l.within(func() error { return l.do(C.UPFRONT_LUA_SET, name, value) })
}

// Func is a Go function for scripts. If it returns an error or panics, Lua raises an error, as
// error(text) does. If the script doesn't catch that error, the Go call that runs the script
// returns it. A Func may not use the state.
type Func func(args []any) (results []any, err error)

// Func sets a global variable to a function, and keeps the function until the state closes.
func (l *State) Func(name string, fn Func) error {
	if fn == nil {
		return fmt.Errorf("lua: BUG: state %q: Func %q of nil", l.plan.Name, name)
	}
	return l.within(func() error {
		l.functions = append(l.functions, fn)
		return l.do(C.UPFRONT_LUA_FUNCTION, name, len(l.functions)-1)
	})
}

// Stats returns the counts of the heap. Peak is about the Size that would have sufficed, if the
// heap isn't fragmented. All counts are zero while a script runs and after the state has closed.
func (l *State) Stats() (stats arena.HeapStats) {
	_ = l.within(func() error {
		stats = l.heap.Stats()
		return nil
	})
	return stats
}

// within runs fn with the state reserved for it.
func (l *State) within(fn func() error) error {
	if !l.word.CompareAndSwap(idle, running) {
		return l.refused()
	}
	defer l.leave()
	return l.named(fn())
}

func (l *State) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("lua: state %q: %w", l.plan.Name, err)
}

func (l *State) leave() {
	l.pins.Unpin()
	l.word.CompareAndSwap(running, idle) // it may be closed or lost
}

func (l *State) refused() error {
	switch l.word.Load() {
	case zero:
		return errors.New("lua: BUG: a zero State: New makes one")
	case closed:
		return fmt.Errorf("lua: BUG: state %q, whose scope has closed: %w", l.plan.Name, scope.ErrClosed)
	case lost:
		return fmt.Errorf("lua: BUG: state %q is lost: a Go function ended its goroutine inside a script",
			l.plan.Name)
	}
	return fmt.Errorf("lua: BUG: state %q is used while it runs: one goroutine at a time uses it, and a "+
		"Go function that it calls may not", l.plan.Name)
}

// do makes C perform an operation with a name and values.
func (l *State) do(what C.int, name string, values ...any) error {
	l.setText(&l.c.values[0], name)
	if err := l.put(l.c.values[1:], values); err != nil {
		return err
	}
	return l.enter(what, 1+len(values))
}

// enter is do for values that are in place.
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

func (l *State) full(words string) error {
	return fmt.Errorf("%w: %s: raise Size in its lua.Plan, which is %d", scope.ErrFull, words, l.plan.Size)
}

// raised is the error of a Go function after its way through Lua.
type raised struct {
	text  string
	cause error
}

func (e *raised) Error() string { return e.text }
func (e *raised) Unwrap() error { return e.cause }

type ended State

// Close closes the state. It waits while C runs in another goroutine. If a Go function of the state
// closes the scope, the script ends when the function returns, and the heap ends with its live
// blocks.
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
		l.heap.MayLive() // the error below reports it
		return fmt.Errorf("lua: BUG: state %q has closed, and %d blocks are live", l.plan.Name, live)
	}
	return nil
}

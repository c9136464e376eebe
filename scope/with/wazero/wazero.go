package wazero

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// Memory says where the linear memories of guests lie, and how much each may have.
type Memory struct {
	// From gives the blocks, and gets each back when its instance is closed: an [arena.Shared] of a
	// heap or a buddy, for instances on many goroutines. Nil is the scope of the guests, which has
	// them back when it closes.
	From arena.Freer

	// Most is how many bytes a memory may grow to at most, rounded down to pages of 64 KiB. 0 is what
	// the module declares: 4 GiB where that is nothing.
	Most uint64
}

// Guests are instances of modules in one runtime, closed with a scope. Any goroutine may make and
// close them, in any order, if Memory.From may be used by any; of a From that is nil, the goroutine
// that uses the scope.
type Guests struct {
	scope   scope.Scope
	runtime wazero.Runtime
	memory  Memory

	mu     sync.Mutex
	open   []*instance // the newest last, and some that are closed
	made   int
	closed bool

	bug atomic.Pointer[error] // the first refusal of Memory.From to take a block back
}

// NewGuests makes guests that s closes, newest first, before what was made in s earlier. The
// runtime stays the caller's, and may close first. Cost: that of [scope.Scope.Own], and a Go
// allocation.
func NewGuests(s scope.Scope, runtime wazero.Runtime, memory Memory) *Guests {
	g := &Guests{scope: s, runtime: runtime, memory: memory}
	s.Own(g)
	return g
}

// Module is an instance, as wazero has it but for Close. What takes wazero's own type alone, as
// some packages below experimental do, takes the Module in it. Host functions and Runtime.Module
// have that one.
type Module struct {
	api.Module
	instance *instance
}

// Close closes the instance, on any goroutine. Calls of its functions that are at work keep the
// memory until the last has come back, which a runtime with WithCloseOnContextDone has them do soon;
// then From has it back. Another time there is nothing to do.
func (m *Module) Close(ctx context.Context) error { return m.CloseWithExitCode(ctx, 0) }

// CloseWithExitCode is Close with the code that later calls get.
func (m *Module) CloseWithExitCode(ctx context.Context, code uint32) error {
	return m.instance.close(ctx, code)
}

// ExportedFunction is wazero's, which counts who is inside.
func (m *Module) ExportedFunction(name string) api.Function {
	if f := m.Module.ExportedFunction(name); f != nil {
		return function{f, m.instance}
	}
	return nil
}

// function keeps the memory while it is called.
type function struct {
	api.Function
	instance *instance
}

func (f function) Call(ctx context.Context, params ...uint64) ([]uint64, error) {
	f.instance.enter()
	defer f.instance.leave()
	return f.Function.Call(ctx, params...)
}

func (f function) CallWithStack(ctx context.Context, stack []uint64) error {
	f.instance.enter()
	defer f.instance.leave()
	return f.Function.CallWithStack(ctx, stack)
}

// Instantiate is that of the runtime, with the memory that the module declares in Memory.From. The
// scope closes the instance, unless its Close does before. Close it too when wazero did, as a
// context ended: wazero may leave the memory to that.
//
// The error of a full From or scope wraps [scope.ErrFull] and names the module, or its number among
// these guests, the bytes, and what to raise or lower; nothing else has changed. Without a From it is
// the scope's TryAllocUnzeroed that was full, which the scope remembers. After the scope closed the
// error wraps [scope.ErrClosed].
//
// A start function gets a context with the allocator and the values of ctx. It can't instantiate
// another module with it: that fails.
//
// Cost: an Alloc of From, the clearing of the first pages, and what wazero takes beside memory.
func (g *Guests) Instantiate(ctx context.Context, compiled wazero.CompiledModule,
	config wazero.ModuleConfig) (*Module, error) {
	i, err := g.next(compiled.Name())
	if err != nil {
		return nil, err
	}
	if err := i.instantiate(ctx, compiled, config); err != nil {
		return nil, err
	}
	if !g.add(i) {
		return nil, errors.Join(errClosed, i.close(ctx, 0))
	}
	return &Module{i.mod, i}, nil
}

// next is an instance that has nothing yet.
func (g *Guests) next(name string) (*instance, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errClosed
	}
	g.made++
	return &instance{guests: g, name: name, number: g.made}, nil
}

var errClosed = fmt.Errorf("with/wazero: Instantiate after the scope of the guests closed: %w",
	scope.ErrClosed)

// add has the scope close the instance, if it isn't closed. Those that are closed already go when
// there is no place.
func (g *Guests) add(i *instance) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	if len(g.open) == cap(g.open) {
		g.open = slices.DeleteFunc(g.open, (*instance).over)
		g.open = slices.Grow(g.open, len(g.open)+16) // so that most times there is a place
	}
	g.open = append(g.open, i)
	return true
}

// Close closes what is open, newest first. The scope does it; another time there is nothing to do.
// The errors are wazero's, of closing files, and that of a From that didn't take a block back.
func (g *Guests) Close() error {
	g.mu.Lock()
	open := g.open
	g.open, g.closed = nil, true
	g.mu.Unlock()
	var errs []error
	for _, i := range slices.Backward(open) {
		errs = append(errs, i.close(context.Background(), 0))
	}
	if bug := g.bug.Swap(nil); bug != nil {
		errs = append(errs, *bug)
	}
	return errors.Join(errs...)
}

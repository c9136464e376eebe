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

// Memory configures the linear memories of guests: the source and the bound of each memory.
type Memory struct {
	// From allocates a block for each memory. The block is freed when the instance is closed and
	// its calls have returned. Use an [arena.Shared] of a heap or a buddy for instances on many
	// goroutines. If From is nil, the blocks are in the guests' scope, which frees them when it
	// closes.
	From arena.Freer

	// Most bounds a memory in bytes, rounded down to pages of 64 KiB. If Most is 0, or larger than
	// the bound that the module declares, the module's bound counts. Without both it is 4 GiB, or
	// the limit of the runtime.
	Most uint64
}

// Guests are instances of modules in one runtime, closed with a scope. If any goroutine may use
// Memory.From, any goroutine may make and close instances, in any order. With a nil From only the
// goroutine that uses the scope may do so.
type Guests struct {
	scope   scope.Scope
	runtime wazero.Runtime
	memory  Memory

	mu     sync.Mutex
	open   []*instance // the newest last; some are closed
	made   int
	closed bool

	bug atomic.Pointer[error] // the first refusal of Memory.From to take a block back
}

// NewGuests returns Guests in s. The Close of s closes the instances, newest first, in order with
// the finalizers of s. The caller closes the runtime, before or after s. Cost: that of
// [scope.Scope.Own], and a Go allocation.
func NewGuests(s scope.Scope, runtime wazero.Runtime, memory Memory) *Guests {
	g := &Guests{scope: s, runtime: runtime, memory: memory}
	s.Own(g)
	return g
}

// Module is a wazero module with a Close of its own. The field Module is wazero's own module. Host
// functions get it, and Runtime.Module returns it. Pass this field to functions that require
// wazero's own type, such as some in packages below experimental.
type Module struct {
	api.Module
	instance *instance
}

// Close closes the instance and returns wazero's error. A block from [Memory.From] is freed when
// the last running call of [Module.ExportedFunction] has returned. A runtime with
// WithCloseOnContextDone ends a call that is in the guest's code. A second Close does nothing.
func (m *Module) Close(ctx context.Context) error { return m.CloseWithExitCode(ctx, 0) }

// CloseWithExitCode is Close with an exit code. The error of a later call may contain the exit
// code.
func (m *Module) CloseWithExitCode(ctx context.Context, code uint32) error {
	return m.instance.close(ctx, code)
}

// ExportedFunction returns wazero's function, and counts the function's running calls. It returns
// nil if there is no such function.
func (m *Module) ExportedFunction(name string) api.Function {
	if f := m.Module.ExportedFunction(name); f != nil {
		return function{f, m.instance}
	}
	return nil
}

// function keeps the memory during its calls.
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

// Instantiate instantiates a module as the runtime does, with the module's own memory from
// Memory.From. If the program doesn't close the instance, the scope does. If wazero closed an
// instance because a context ended, close the instance nevertheless, because wazero may not have
// freed the memory.
//
// If From or the scope is full, or if Most is below the module's first pages, the error wraps
// [scope.ErrFull]. The error names the module (or the module's number among these guests), the
// bytes, and the setting to raise or lower. If the scope is full, the error wraps the scope's Err.
// After the guests have closed, the error wraps [scope.ErrClosed].
//
// A start function gets a context with the allocator and the values of ctx. The start function may
// pass that context to an Instantiate of Guests, but not to the runtime's own InstantiateModule:
// for a module with a memory, the outer Instantiate then returns an error.
//
// Cost: an Alloc of From or the scope, the clearing of the first pages, and wazero's own cost.
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

// add notes the instance for the scope to close, or reports false if the guests are closed. When
// the list is full, it drops closed instances.
func (g *Guests) add(i *instance) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	if len(g.open) == cap(g.open) {
		g.open = slices.DeleteFunc(g.open, (*instance).over)
		g.open = slices.Grow(g.open, len(g.open)+16) // so that the list is seldom full
	}
	g.open = append(g.open, i)
	return true
}

// Close closes the open instances, newest first. The scope calls Close; a second call closes none.
// Close returns wazero's errors of closing files, and the first error of From.Free.
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

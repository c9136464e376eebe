package wazero

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/upfront-mem/upfront/scope"
)

const (
	page  = 64 << 10
	align = 64 // a line, which is enough for atomic instructions
)

// instance is an instance of a module, as the allocator of its memory and as that memory.
type instance struct {
	guests *Guests
	name   string
	number int
	mod    api.Module // nil while it is made, and if wazero made none

	asked bool   // wazero called Allocate
	begun bool   // it has its first pages
	block []byte // its memory at full size
	used  uint64 // bytes that the guest has seen

	mu     sync.Mutex
	inside int  // calls, and the making of the instance
	ended  bool // wazero no longer needs the memory
	given  bool // the memory was freed
}

// refusal passes a full error through wazero, whose allocators can't return errors.
type refusal struct{ error }

// instantiate makes the instance in wazero. If that fails in any way, the memory is free again.
func (i *instance) instantiate(ctx context.Context, compiled wazero.CompiledModule,
	config wazero.ModuleConfig) (err error) {
	defer i.leave()
	i.enter()
	defer func() {
		v := recover()
		refused, full := v.(refusal)
		if full {
			err = refused.error
		}
		// if neither, a start function may have ended the goroutine, and wazero has the instance
		if err != nil || v != nil {
			i.Free()
		}
		if v != nil && !full {
			panic(v)
		}
	}()
	ctx = experimental.WithMemoryAllocator(ctx, i)
	mod, err := i.guests.runtime.InstantiateModule(ctx, compiled, config)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mod = mod
	return err
}

// wazero calls Allocate once, for a module that declares a memory.
func (i *instance) Allocate(_, most uint64) experimental.LinearMemory {
	if i.asked {
		panic(fmt.Errorf("with/wazero: BUG: a start function of %s instantiates another module with "+
			"the context that it got: take another", i))
	}
	i.asked = true
	if limit := i.guests.memory.Most; limit != 0 {
		most = min(most, limit&^(page-1))
	}
	if most != 0 {
		i.block = unsafe.Slice((*byte)(i.reserve(most)), most)
	}
	return i
}

// reserve allocates the block for the whole life of the memory.
func (i *instance) reserve(size uint64) unsafe.Pointer {
	g := i.guests
	if g.memory.From != nil {
		p := g.memory.From.Alloc(size, align)
		if p == nil {
			panic(refusal{fmt.Errorf("with/wazero: %s: Memory.From has no %d bytes for its memory: "+
				"lower Memory.Most, or make From larger: %w", i, size, scope.ErrFull)})
		}
		return p
	}
	p := g.scope.TryAllocUnzeroed(size, align)
	if p == nil {
		panic(refusal{fmt.Errorf("with/wazero: %s: %d bytes for its memory: %w; or lower Memory.Most",
			i, size, g.scope.Err())})
	}
	return p
}

// Reallocate returns the first size bytes, or nil if the guest can't have as many. wazero calls
// Reallocate for the first pages, and then for each growth, one call at a time.
func (i *instance) Reallocate(size uint64) []byte {
	if size > uint64(len(i.block)) {
		if i.begun {
			return nil
		}
		panic(refusal{fmt.Errorf("with/wazero: %s begins with %d bytes of memory, Memory.Most allows "+
			"%d: raise it: %w", i, size, i.guests.memory.Most, scope.ErrFull)})
	}
	i.begun = true
	if size > i.used {
		clear(i.block[i.used:size])
		i.used = size
	}
	// cap is size, because later bytes aren't cleared, and closed modules grow within cap
	return i.block[:size:size]
}

// Free ends the memory. wazero calls Free when the instance is closed, on any goroutine. If calls
// are running, the last call frees the memory. Memory in a scope ends at once, even while calls
// run.
func (i *instance) Free() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended = true
	if i.mod != nil && len(i.block) > 0 {
		field(i.mod.Memory(), "Max").SetUint(0) // a call inside would grow on Go's heap
	}
	if i.inside == 0 || i.guests.memory.From == nil && i.mod != nil {
		i.giveBack()
	}
}

func (i *instance) enter() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.inside++
}

func (i *instance) leave() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.inside--; i.inside == 0 && i.ended {
		i.giveBack()
	}
}

// close ends the instance. It calls Free too: if a call failed just after its context ended, wazero
// takes the instance for closed and frees nothing.
func (i *instance) close(ctx context.Context, code uint32) error {
	err := i.mod.CloseWithExitCode(ctx, code)
	i.Free()
	return err
}

// over reports whether close has nothing left to do.
func (i *instance) over() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mod.IsClosed() && (i.given || !i.asked)
}

// giveBack frees the memory once. pre: the lock is held.
func (i *instance) giveBack() {
	if i.given = true; len(i.block) == 0 {
		return
	}
	p := unsafe.Pointer(unsafe.SliceData(i.block))
	i.block = nil
	if i.mod != nil {
		empty(i.mod)
	}
	if from := i.guests.memory.From; from != nil {
		if err := from.Free(p); err != nil { // the guests' Close returns it
			err = fmt.Errorf("with/wazero: the memory of %s: %w", i, err)
			i.guests.bug.CompareAndSwap(nil, &err)
		}
	}
}

// empty takes the module's memory away: from the host, from modules that import it, and from its
// own functions. wazero has no call for that, and would use the old bytes.
func empty(mod api.Module) {
	field(mod.Memory(), "Buffer").SetBytes(nil)
	field(mod.Memory(), "Max").SetUint(0)
	engine := field(mod, "Engine").Interface()
	engine.(interface{ MemoryGrown() }).MemoryGrown() // compiled code has a copy
}

// field returns an exported field of a wazero type. A test fails if a version of wazero has other
// fields.
func field(of any, name string) reflect.Value { return reflect.ValueOf(of).Elem().FieldByName(name) }

func (i *instance) String() string {
	if i.name == "" {
		return fmt.Sprintf("module %d", i.number)
	}
	return fmt.Sprintf("module %q", i.name)
}

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
	align = 64 // a line, and more than an atomic instruction needs
)

// instance is one of a module, as the allocator of its memory and as that memory.
type instance struct {
	guests *Guests
	name   string
	number int
	mod    api.Module // nil while it is made, and when wazero made none

	asked bool   // wazero asked for a memory
	begun bool   // and has its first pages
	block []byte // all that it may grow to
	used  uint64 // bytes that the guest has seen

	mu    sync.Mutex
	made  bool // instantiation is over
	ended bool // wazero needs the memory no more
}

// refusal passes through wazero, which knows no allocator that is full.
type refusal struct{ error }

// instantiate has wazero make the instance. When that fails, however, the memory has gone back.
func (i *instance) instantiate(ctx context.Context, compiled wazero.CompiledModule,
	config wazero.ModuleConfig) (err error) {
	defer func() {
		v := recover()
		refused, full := v.(refusal)
		if full {
			err = refused.error
		}
		// Not where a start function ended the goroutine: the instance is wazero's, who may close it.
		i.finish(err != nil || v != nil)
		if v != nil && !full {
			panic(v)
		}
	}()
	i.mod, err = i.guests.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, i), compiled,
		config)
	return err
}

// finish ends instantiation: what failed, or was closed meanwhile, gives its memory back.
func (i *instance) finish(failed bool) {
	i.mu.Lock()
	i.made, i.ended = true, i.ended || failed
	ended := i.ended
	i.mu.Unlock()
	if ended {
		i.giveBack()
	}
}

// Allocate is called by wazero once, for a module that declares a memory.
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

// reserve gives the block for the whole life of the memory.
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

// Reallocate gives the guest the first so many bytes; nil, when it can't have as many. It is called
// for the first pages, and then by who grows, one at a time.
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
	return i.block[:size]
}

// Free is called by wazero when the instance is closed, on any goroutine. While it is made, finish
// does it.
func (i *instance) Free() {
	i.mu.Lock()
	first := i.made && !i.ended
	i.ended = true
	i.mu.Unlock()
	if first {
		i.giveBack()
	}
}

// close ends the instance. Where a call failed just after its context ended, wazero holds it for
// closed and frees nothing.
func (i *instance) close(ctx context.Context, code uint32) error {
	err := i.mod.CloseWithExitCode(ctx, code)
	i.Free()
	return err
}

// over says whether there is nothing left to close.
func (i *instance) over() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mod.IsClosed() && (i.ended || !i.asked)
}

// giveBack is called once, when nobody is inside.
func (i *instance) giveBack() {
	if len(i.block) == 0 {
		return
	}
	p := unsafe.Pointer(unsafe.SliceData(i.block))
	i.block = nil
	if i.mod != nil {
		empty(i.mod)
	}
	if from := i.guests.memory.From; from != nil {
		if err := from.Free(p); err != nil {
			i.guests.refused(fmt.Errorf("with/wazero: the memory of %s: %w", i, err))
		}
	}
}

// empty leaves a module's memory no byte and no growth: for a host, for who imports it, and for its
// own functions. wazero has no call for that, and would read and write where the memory was. These
// are exported fields of its types; a test says when another version has others.
func empty(mod api.Module) {
	memory := reflect.ValueOf(mod.Memory()).Elem()
	memory.FieldByName("Buffer").SetBytes(nil)
	memory.FieldByName("Max").SetUint(0)
	engine := reflect.ValueOf(mod).Elem().FieldByName("Engine").Interface()
	engine.(interface{ MemoryGrown() }).MemoryGrown() // compiled code has a copy
}

func (i *instance) String() string {
	if i.name == "" {
		return fmt.Sprintf("module %d", i.number)
	}
	return fmt.Sprintf("module %q", i.name)
}

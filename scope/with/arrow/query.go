package arrow

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// Func is what a query does, with an allocator and a context that has it, for the calls of package
// compute. Both are good until it returns. Any of its goroutines may use the allocator.
type Func = func(ctx context.Context, mem memory.Allocator) error

// Place is what a query opens its scope in: a [scope.Scope] or a [scope.Scratch].
type Place interface {
	Do(name string, fn func(scope.Scope) error) error
}

// Query runs fn on a scope of its own, which it opens in a place and closes when fn has returned:
// all arrays of the query end with it. A full is an error that is scope.ErrFull and names the scope
// and the key of the plan to raise.
//
// Nobody else uses the place's arena meanwhile, but fn itself may. Cost: six small Go allocations,
// of 300 bytes, and three for each call of compute, beside arrow's own.
func Query(ctx context.Context, in Place, name string, fn Func) error {
	return in.Do(name, func(s scope.Scope) error { return In(ctx, s, fn) })
}

// In is Query in a scope that is open: the arrays live as long as s. A full stays there, as that of
// a Try: s remembers it.
func In(ctx context.Context, s scope.Scope, fn Func) error { return run(ctx, &inScope{s: s}, fn) }

// InHeap is Query in a heap or a buddy, where arrays that are released make room for others; what
// isn't released ends with the query. Who else uses it on another goroutine does so through the
// same [arena.Shared]. A full is scope.ErrFull.
func InHeap(ctx context.Context, heap arena.Reallocator, fn Func) error {
	return run(ctx, &inHeap{heap: heap, live: map[unsafe.Pointer]struct{}{}}, fn)
}

// query is the allocator of one.
type query struct {
	calls sync.WaitGroup // of compute's functions

	mu    sync.Mutex // guards what follows: compute calls the allocator on goroutines of its own
	from  place
	over  error // why it gives nothing any more: what was full first, or that the query has ended
	ended bool
	lent  int // bytes of the Go heap, to FilterTable
}

// lentMost is for 16 million rows.
const lentMost = 64 << 20

var errEnded = fmt.Errorf("arrow: BUG: a request of a query that has ended: %w", scope.ErrClosed)

func run(ctx context.Context, from place, fn Func) (err error) {
	q := &query{from: from}
	defer func() {
		if refused := q.end(); refused != nil && !errors.Is(err, refused) {
			err = errors.Join(err, refused)
		}
	}()
	return q.answer(func() error { return fn(q.context(ctx), q) })
}

// end waits for compute's functions that fn left at work on other goroutines: they write to what ends
// now. None begins any more.
func (q *query) end() error {
	q.mu.Lock()
	q.over = errEnded
	q.mu.Unlock()
	q.calls.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	return q.from.end()
}

func (q *query) why() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.over
}

// answer runs fn, and gives its error, or what was full, on any goroutine. What fn says or panics
// with after that came of it.
func (q *query) answer(fn func() error) (err error) {
	defer func() {
		full := q.why()
		if full == nil {
			return // and if it panics, that goes on
		}
		switch v := recover().(type) {
		case nil:
		case error:
			err = v
		default:
			err = fmt.Errorf("panic: %v", v)
		}
		if err == nil {
			err = full
		} else if !errors.Is(err, full) {
			err = fmt.Errorf("%w; then: %w", full, err)
		}
	}()
	return fn()
}

// Allocate gives zeros that begin at a multiple of 64.
func (q *query) Allocate(size int) []byte { return q.Reallocate(size, nil) }

// Reallocate gives b another size; what is more are zeros.
func (q *query) Reallocate(size int, b []byte) []byte {
	if size == 0 && cap(b) == 0 {
		return []byte{}
	}
	longer, err := q.resize(size, b)
	if err != nil {
		return q.refuse(err, size, b)
	}
	return longer
}

func (q *query) resize(size int, b []byte) ([]byte, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over != nil {
		return nil, q.over
	}
	if b = q.from.resize(linesOf(size), b); b == nil {
		q.over = q.from.full(size)
		return nil, q.over
	}
	return b[:size], nil
}

// Free gives a block back, where its place can.
func (q *query) Free(b []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ended && cap(b) > 0 {
		q.from.put(b)
	}
}

// refuse leaves who asked: by a panic that goes to answer, where that is on its stack. A goroutine
// that compute started has none: it ends, because a panic there ends the process, and who waits for
// it looks at what was full. FilterTable can't be left: it releases what goroutines use that it
// started. So it gets its indices from the Go heap then, and ends by itself, as no other call
// begins.
func (q *query) refuse(err error, size int, b []byte) []byte {
	answers, filters := whoAsks()
	q.mu.Lock()
	lends := filters && size >= 0 && size <= lentMost-q.lent
	if lends {
		q.lent += size
	}
	ended := q.ended
	q.mu.Unlock()
	switch {
	case lends:
		return memory.DefaultAllocator.Reallocate(size, b)
	case answers || ended:
		panic(err)
	}
	runtime.Goexit()
	return nil
}

const filterTable = "github.com/apache/arrow-go/v18/arrow/compute.FilterTable"

var answerName = runtime.FuncForPC(reflect.ValueOf((*query).answer).Pointer()).Name()

// whoAsks says whether an answer is at work on this goroutine, and whether a FilterTable is that it
// started.
func whoAsks() (answers, filters bool) {
	pcs := make([]uintptr, 64)
	for runtime.Callers(0, pcs) == len(pcs) {
		pcs = make([]uintptr, 2*len(pcs))
	}
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	for more := true; more; {
		var frame runtime.Frame
		if frame, more = frames.Next(); frame.Function == answerName {
			return true, filters
		}
		filters = filters || strings.HasPrefix(frame.Function, filterTable)
	}
	return false, filters
}

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

// Func is the work of a query. ctx contains the allocator mem, for calls of package compute. ctx
// and mem are valid until Func returns. Any goroutine of the query may use mem.
type Func = func(ctx context.Context, mem memory.Allocator) error

// Place is a [scope.Scope] or a [scope.Scratch], in which a query opens its scope.
type Place interface {
	Do(name string, fn func(scope.Scope) error) error
}

// Query runs fn with an allocator on a scope of its own. Query opens the scope in a Place, and
// closes the scope when fn and its calls of compute have returned. All arrays of the query end
// then. Query returns the error of fn. If memory ran out, the error wraps scope.ErrFull and names
// the scope and the key of the plan to raise.
//
// While fn runs, only fn may use the Place's arena. In addition to arrow's own cost, Query makes
// six Go allocations, of 300 bytes together, and a few for each call of compute.
func Query(ctx context.Context, in Place, name string, fn Func) error {
	return in.Do(name, func(s scope.Scope) error { return In(ctx, s, fn) })
}

// In is Query in an open scope: the arrays live as long as s. If memory runs out, s.Err returns the
// error, as after a Try function.
func In(ctx context.Context, s scope.Scope, fn Func) error { return run(ctx, &inScope{s: s}, fn) }

// InHeap is Query in a heap or a buddy. A released array makes room for others. The other arrays
// end with the query. If other goroutines also use the heap, pass the heap's [arena.Shared] to
// InHeap, and use the Shared in these goroutines. If the heap runs out of room, the error wraps
// scope.ErrFull.
func InHeap(ctx context.Context, heap arena.Reallocator, fn Func) error {
	return run(ctx, &inHeap{heap: heap, live: map[unsafe.Pointer]struct{}{}}, fn)
}

// query is the allocator of one query.
type query struct {
	calls sync.WaitGroup // of compute's functions

	mu    sync.Mutex // guards the rest: compute allocates on goroutines of its own
	from  place
	over  error // the first full, or errEnded: later requests are refused
	ended bool
	lent  int // bytes of the Go heap lent to FilterTable
}

// lentMost is enough for 16 million rows.
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

// end refuses further calls of compute. It waits for calls that fn left running on other
// goroutines, because they write to the query's memory.
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

// answer runs fn and returns its error, or the query's full error, from any goroutine. It appends a
// later error or panic of fn to the full error, which caused it.
func (q *query) answer(fn func() error) (err error) {
	defer func() {
		full := q.why()
		if full == nil {
			return // a panic goes on
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

// Allocate returns size zeros that begin at a multiple of 64.
func (q *query) Allocate(size int) []byte { return q.Reallocate(size, nil) }

// Reallocate returns b's bytes in a block of another size. Bytes are zeros unless b had them.
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

func (q *query) Free(b []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ended && cap(b) > 0 {
		q.from.put(b)
	}
}

// refuse panics if answer is on the stack and recovers the panic. On a goroutine of compute a panic
// would end the process. So refuse ends the goroutine instead, and the function that waits for it
// returns the full error. FilterTable can't be stopped, because it releases memory that its
// goroutines use. refuse returns Go memory for its indices, and FilterTable soon returns, because
// no other call begins.
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

// whoAsks reports whether answer is on this goroutine's stack, and whether FilterTable is, called
// inside it.
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

// Package copies copies values. Some values must not be copied, because a copy would have a state
// of its own. go vet must refuse the lines that copy them. These lines end with the type that go
// vet names.
package copies

import (
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
	"github.com/upfront-mem/upfront/scope/stack"
)

type level struct{ Queue container.Deque[int64] }

func wrong(
	b *budget.Budget,
	st *stack.Stack,
	d *budget.Reader,
	shared *scope.SharedPool[int64],
	table *container.Map[int64, int64],
	names *container.StringMap[int64],
	text *scope.Text,
	l *level,
	builder scope.Builder[int64], // vet: scope.Builder[int64]
	list container.List[int64], // vet: scope/container.List[int64]
) {
	b2 := *b           // vet: budget.Budget
	st2 := *st         // vet: scope/stack.Stack
	d2 := *d           // vet: budget.Reader
	shared2 := *shared // vet: scope.SharedPool[int64]
	table2 := *table   // vet: scope/container.Map[int64, int64]
	names2 := *names   // vet: scope/container.StringMap[int64]
	text2 := *text     // vet: scope.Text
	queue2 := l.Queue  // vet: scope/container.Deque[int64]
	use(&b2, &st2, &d2, &shared2, &table2, &names2, &text2, &queue2, &builder, &list)
}

// fine copies handles, which are small values: a copy is the same thing.
func fine(s scope.Scope, p scope.Scratch, pool scope.Pool[int64], ref scope.Ref[int64], held scope.Owned,
	scratches scope.Scratches, lent budget.Lease, named scope.HandlePool[int64], numbers scope.Maker[int64]) {
	s2, p2, pool2, ref2, held2, scratches2, lent2, named2 := s, p, pool, ref, held, scratches, lent, named
	builder, text := numbers.Build(s), s.Text()
	use(s2, p2, pool2, ref2, held2, scratches2, lent2, named2, &builder, &text)
}

func use(...any) {}

package budget

import (
	"context"
	"runtime/trace"
)

// traced begins a task and a region of runtime/trace, "upfront.Load", which end with end. The name of the budget's region
// is a log of the task. Nothing is made while nobody traces.
func traced(ctx context.Context, what string, r *region) (end func()) {
	if !trace.IsEnabled() {
		return untraced
	}
	ctx, task := trace.NewTask(ctx, "upfront."+what)
	trace.Log(ctx, "upfront.region", r.name)
	part := trace.StartRegion(ctx, "upfront."+what)
	return func() { part.End(); task.End() }
}

func untraced() {}

// tracedFrame is NextFrame while somebody traces: a region of it, which makes no Go allocation.
func (b *Budget) tracedFrame() (err error) {
	b.traced = true
	defer func() { b.traced = false }()
	trace.WithRegion(context.Background(), "upfront.NextFrame", func() { err = b.NextFrame() })
	return err
}

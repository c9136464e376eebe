package budget

import (
	"context"
	"runtime/trace"
)

// traced begins a task and a region of runtime/trace, "upfront.Load", that end with end. The name
// of the budget's region is a log of the task. Without a trace it makes nothing.
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

// tracedFrame is NextFrame during a trace: a region of it, without a Go allocation.
func (b *Budget) tracedFrame() (err error) {
	b.traced = true
	defer func() { b.traced = false }()
	trace.WithRegion(context.Background(), "upfront.NextFrame", func() { err = b.NextFrame() })
	return err
}

package budget

import (
	"context"
	"runtime/trace"
)

// traced begins a task with a trace region, such as "upfront.Load", and logs the name of the
// budget's region in it. end ends both. Without a trace it does nothing.
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

// tracedFrame runs NextFrame in a trace region, without a Go allocation.
func (b *Budget) tracedFrame() (err error) {
	b.traced = true
	defer func() { b.traced = false }()
	trace.WithRegion(context.Background(), "upfront.NextFrame", func() { err = b.NextFrame() })
	return err
}

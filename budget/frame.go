package budget

import (
	"errors"
	"fmt"
	"runtime/trace"

	"github.com/upfront-mem/upfront/scope"
)

const frameScope = "frame" // the name of the frame's own scope

// Frame is the scope of the frame's current buffer. What is made in it in frame n lives until the end of frame
// n+1, with 3 buffers n+2, with one n itself.
func (b *Budget) Frame() scope.Scope {
	if len(b.frame) == 0 {
		panic(fmt.Sprintf("budget: BUG: plan %q has no frame; give it frame.buffers and frame.size", b.plan.Name))
	}
	if b.closed.Load() {
		panic(fmt.Sprintf("budget: BUG: the frame of budget %q, which is closed", b.plan.Name))
	}
	return b.current
}

// NextFrame ends the frame: the oldest buffer is emptied, finalizers first, and becomes the current one. With one buffer that is
// the one that ends; its finalizers may allocate nothing in it. It returns their
// errors, which heaps there had live blocks, and a full of a Try... in the frame that ends. Call it when no worker is at work on the frame or on scratch arenas
// that were asked for by number. Scopes that are open on these are leaks: Report counts them from now on, Close names
// them; those of the frame are closed and named in the error, too. Cost: O(finalizers), no allocation, and a call into C
// for each pool that is open there; where there are none, tens of nanoseconds, whatever was made.
func (b *Budget) NextFrame() (err error) {
	if b.closed.Load() {
		return fmt.Errorf("budget %q: NextFrame: %w", b.plan.Name, ErrClosed)
	}
	if trace.IsEnabled() && !b.traced {
		return b.tracedFrame()
	}
	b.strictFrame()
	if busy := b.finalizing(); busy != "" {
		return fmt.Errorf("budget %q: BUG: NextFrame from a finalizer of %s", b.plan.Name, busy)
	}
	if !b.scratchAsPublished() {
		b.countOpenScratch(false)
		b.publishScratch()
	}
	if len(b.frame) == 0 {
		return nil
	}
	next := b.buffer + 1
	if next == len(b.frame) {
		next = 0
	}
	ending, oldest := b.frame[b.buffer], b.frame[next]
	changed := b.published.frame[b.buffer].changed() // before: ending may be oldest
	if s, used, ok := ending.NextPlain(oldest); ok {
		b.publishPlain(next, used, changed)
		b.buffer, b.current = next, s
		return nil
	}
	return b.endFrame(next)
}

// endFrame is for a frame in which there is something to run, to report or to count.
func (b *Budget) endFrame(next int) (err error) {
	ending, oldest := b.frame[b.buffer], b.frame[next]
	b.countOpenFrame()
	left := ending.Left(1)
	frozen := false
	freeze := func() {
		if !frozen {
			frozen = true
			ending.Freeze()
		}
	}
	defer func() { // also when a finalizer ends the goroutine
		freeze()
		err = errors.Join(err, oldest.CloseTo(0)) // it is empty, unless a finalizer ended the goroutine
		b.buffer, b.current = next, oldest.Open(frameScope)
		b.publishFrame()
	}()
	closed := ending.CloseTo(1)
	if ending == oldest { // else finalizers of the oldest may still allocate in the frame that ends
		freeze()
	}
	return errors.Join(left, closed, oldest.CloseTo(0))
}

// finalizing names a buffer of the frame, or a scratch arena of a worker, whose finalizers are running, or is empty. Scratch on loan
// are other goroutines' affair.
func (b *Budget) finalizing() string {
	for i := len(b.regions); i < len(b.stacks); i++ {
		if !b.isOurs(i) {
			continue
		}
		if closing, _ := b.stacks[i].Busy(); closing {
			return b.stacks[i].Arena
		}
	}
	return ""
}

// countOpenScratch counts each scope on scratch that is open, once. What is on loan may be in use at NextFrame; it counts when it is
// given back, and at the end.
func (b *Budget) countOpenScratch(lent bool) {
	for i, scratch := range b.scratches {
		if (lent || b.leases.isFixed(i)) && scratch.Depth() != 0 {
			b.left.add(scratch, 0)
		}
	}
}

// countOpenFrame counts the scopes that are open in the frame, in its own.
func (b *Budget) countOpenFrame() {
	if len(b.frame) > 0 && b.frame[b.buffer].Depth() > 1 {
		b.left.add(b.frame[b.buffer], 1)
	}
}

// publishFrame publishes the frame.
func (b *Budget) publishFrame() {
	p := &b.published
	p.beside.Lock()
	defer p.beside.Unlock()
	for i := range p.frame {
		f := &p.frame[i]
		f.seen = f.stack.Changes()
		f.publishBeside()
	}
}

// publishPlain publishes a frame that ended with so many bytes, and the next one, with none: both are most often as they
// were but for these.
func (b *Budget) publishPlain(next int, used uint64, changed bool) {
	p := &b.published
	p.beside.Lock()
	ending, f, most := &p.frame[b.buffer], &p.frame[next], used
	if changed {
		ending.publish()
		most = ending.since
	} else {
		ending.hold(used)
	}
	f.hold(0)
	f.seen = f.stack.Changes()
	if f.gauge != nil {
		ending.sawSince(most, used)
		f.sawSince(0, 0)
	}
	p.beside.Unlock()
}

package budget

import (
	"errors"
	"fmt"
	"runtime/trace"

	"github.com/upfront-mem/upfront/scope"
)

const frameScope = "frame" // the name of the frame's own scope

// Frame returns the scope of the frame's current buffer. An object that is made in it in frame n
// lives until the end of frame n with 1 buffer, of frame n+1 with 2 buffers, and of frame n+2 with
// 3. Frame panics if the plan has no frame, and after Close.
func (b *Budget) Frame() scope.Scope {
	if len(b.frame) == 0 {
		panic(fmt.Sprintf("budget: BUG: plan %q has no frame; give it frame.buffers and frame.size", b.plan.Name))
	}
	if b.closed.Load() {
		panic(fmt.Sprintf("budget: BUG: the frame of budget %q, which is closed", b.plan.Name))
	}
	return b.current
}

// NextFrame ends the frame. It runs the finalizers of the oldest buffer, empties this buffer, and
// makes it the current one. With one buffer, the oldest is the ending frame's own, and its
// finalizers can't allocate in it. The returned error has the finalizers' errors, the names of
// heaps in the buffer with live blocks, and the FullError of a Try call in the ending frame.
//
// Call NextFrame when no worker uses the frame or a numbered worker's scratch. Scopes that are
// still open there are leaks: Report counts them from now on, and Close names them. NextFrame
// closes the open scopes of the frame, and its error names these scopes. If the plan has no frame,
// it still counts the leaks of scratch and publishes its use.
//
// Cost: O(finalizers), and a call into C for each open pool; no allocation unless it fails. Without
// finalizers and pools NextFrame takes tens of nanoseconds for any number of objects, and a few for
// each scratch arena of the plan; more for each one that a numbered worker used.
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
	changed := b.published.frame[b.buffer].changed() // first, because ending may be oldest
	if h, gen, used, ok := ending.NextPlain(oldest); ok {
		b.publishPlain(next, used, changed)
		b.buffer, b.current = next, scope.At(h, gen)
		return nil
	}
	return b.endFrame(next)
}

// endFrame ends a frame that has finalizers, errors or leaks.
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
		// empty already, unless a finalizer ended the goroutine
		err = errors.Join(err, oldest.CloseTo(0))
		b.buffer, b.current = next, scope.At(oldest.Open(0, frameScope))
		b.publishFrame()
	}()
	closed := ending.CloseTo(1)
	if ending == oldest { // else finalizers of the oldest may still allocate in the ending frame
		freeze()
	}
	return errors.Join(left, closed, oldest.CloseTo(0))
}

// finalizing returns the name of a frame buffer or a worker's scratch arena whose finalizers are
// running, or "". Scratch of leases belongs to other goroutines.
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

// countOpenScratch counts each open scope on scratch once. Scratch of leases may be in use at
// NextFrame; it counts at Release, and at Close.
func (b *Budget) countOpenScratch(lent bool) {
	for i, scratch := range b.scratches {
		if (lent || b.leases.isFixed(i)) && scratch.Depth() != 0 {
			b.left.add(scratch, 0)
		}
	}
}

// countOpenFrame counts the open scopes inside the frame's own scope.
func (b *Budget) countOpenFrame() {
	if len(b.frame) > 0 && b.frame[b.buffer].Depth() > 1 {
		b.left.add(b.frame[b.buffer], 1)
	}
}

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

// publishPlain publishes the buffer that ended with used bytes, and the next one, which is empty.
// Most often nothing else of the two has changed.
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

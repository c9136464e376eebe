package flow

import (
	"strings"
	"unsafe"
)

// run follows links until none is left, or so many steps are taken; it says whether none is left. It may
// be called again, and goes on.
func (r *Runner) run(steps int) bool {
	for {
		if r.next == r.end {
			if r.top == 0 {
				return true
			}
			r.pop()
			continue
		}
		if r.taken == steps {
			return false
		}
		r.taken++
		l := (*to)(unsafe.Add(r.base, r.next))
		r.next += toSize
		n := (*node)(unsafe.Add(r.base, offsetOf(l.Node)))
		then, ok := r.step(n, l.Port)
		if !ok || then.count == 0 {
			continue
		}
		if r.next != r.end {
			r.push(span{r.next, r.end})
		}
		r.next, r.end = then.offset, then.offset+then.count*toSize
	}
}

// push keeps a range for later: one for each step at most, two for a send, and one for all that they may do in the level's graph.
func (r *Runner) push(s span) {
	*(*span)(unsafe.Add(r.stack, uintptr(r.top)*rangeSize)) = s
	r.top++
}

// word is a word of state.
func (r *Runner) state(at stateAt) *uint32 { return (*uint32)(unsafe.Add(r.data, at)) }

// step does what a node does, and gives the links to follow.
func (r *Runner) step(n *node, port uint32) (then span, ok bool) {
	then = spanOf(&n.Then)
	switch n.Tag {
	case tagBranch:
		n := (*branch)(unsafe.Pointer(n))
		if !n.If.Get(r) {
			then = spanOf(&n.Else)
		}
	case tagGate:
		closed := r.state(stateAt((*gate)(unsafe.Pointer(n)).Closed))
		switch port {
		case portIn:
			return then, *closed == 0
		case portToggle:
			*closed ^= 1
		default:
			*closed = port - portOpen
		}
		return then, false
	case tagOnce:
		done := r.state(stateAt((*once)(unsafe.Pointer(n)).Done))
		ok = *done == 0 && port == portIn
		*done = 1 - port
		return then, ok
	case tagCounter:
		n := (*counter)(unsafe.Pointer(n))
		count := r.state(n.Count)
		if port == portReset {
			*count = 0
			return then, false
		}
		*count++
		if int32(*count) < n.Limit.Get(r) {
			return then, false
		}
		*count = 0
	case tagDelay, tagTimer:
		return then, r.wait((*delay)(unsafe.Pointer(n)), port)
	case tagSequence:
		n := (*sequence)(unsafe.Pointer(n))
		next := r.state(n.Next)
		lists := spanOf(&n.Lists)
		if port == portReset || lists.count == 0 {
			*next = 0
			return then, false
		}
		i := *next
		if i >= lists.count {
			i = 0
		}
		*next = i + 1
		then = *(*span)(unsafe.Add(r.base, lists.offset+i*uint32(rangeSize)))
	case tagRandom:
		n := (*random)(unsafe.Pointer(n))
		lists := spanOf(&n.Lists)
		if lists.count == 0 {
			return then, false
		}
		then = *(*span)(unsafe.Add(r.base, lists.offset+r.below(lists.count)*uint32(rangeSize)))
	case tagSetBool:
		n := (*set[bool])(unsafe.Pointer(n))
		n.To.Set(r, n.Value.Get(r))
	case tagSetInt, tagSetNumber:
		n := (*set[int32])(unsafe.Pointer(n))
		n.To.Set(r, n.Value.Get(r))
	case tagSetHandle:
		n := (*set[uint64])(unsafe.Pointer(n))
		n.To.Set(r, n.Value.Get(r))
	case tagAddInt:
		n := (*add[int32])(unsafe.Pointer(n))
		if n.To.at != 0 {
			*(*int32)(unsafe.Add(r.data, n.To.at)) += n.Value.Get(r)
		}
	case tagAddNumber:
		n := (*add[float32])(unsafe.Pointer(n))
		if n.To.at != 0 {
			*(*float32)(unsafe.Add(r.data, n.To.at)) += n.Value.Get(r)
		}
	case tagEqualBool:
		n := (*equal[bool])(unsafe.Pointer(n))
		if n.A.Get(r) != n.B.Get(r) {
			then = spanOf(&n.Else)
		}
	case tagEqualInt:
		n := (*equal[int32])(unsafe.Pointer(n))
		if n.A.Get(r) != n.B.Get(r) {
			then = spanOf(&n.Else)
		}
	case tagEqualNumber:
		n := (*equal[float32])(unsafe.Pointer(n))
		if n.A.Get(r) != n.B.Get(r) {
			then = spanOf(&n.Else)
		}
	case tagEqualHandle:
		n := (*equal[uint64])(unsafe.Pointer(n))
		if n.A.Get(r) != n.B.Get(r) {
			then = spanOf(&n.Else)
		}
	case tagLessInt:
		n := (*less[int32])(unsafe.Pointer(n))
		if n.A.Get(r) >= n.B.Get(r) {
			then = spanOf(&n.Else)
		}
	case tagLessNumber:
		n := (*less[float32])(unsafe.Pointer(n))
		if !(n.A.Get(r) < n.B.Get(r)) { // NaN is not less
			then = spanOf(&n.Else)
		}
	case tagAction:
		n := (*action)(unsafe.Pointer(n))
		index := *(*uint32)(unsafe.Add(unsafe.Pointer(r.graph.actions), 4*n.Of))
		parameters := spanOf(&n.Parameters)
		r.of.calls[index](r, r.world, unsafe.Add(r.base, parameters.offset))
	case tagSend:
		then = r.send((*send)(unsafe.Pointer(n)), then)
	}
	return then, true
}

// below gives a number below n: PCG, 32 bits.
func (r *Runner) below(n uint32) uint32 {
	seed := &(*head)(r.data).random
	x := *seed
	*seed = x*747796405 + 2891336453
	x = (x>>(x>>28+4) ^ x) * 277803737
	x = x>>22 ^ x
	return uint32(uint64(x) * uint64(n) >> 32)
}

// wait begins a delay or timer anew, or stops it. It says whether to go on at once.
func (r *Runner) wait(n *delay, port uint32) bool {
	left := r.state(n.Left)
	waiting := &(*head)(r.data).waiting
	ticks := n.Ticks.Get(r)
	if n.Tag == tagTimer {
		ticks = max(ticks, 1)
	}
	if *left != 0 {
		*waiting--
		*left = 0
	}
	if port == portStop {
		return false
	}
	if ticks <= 0 {
		return true
	}
	*left = uint32(ticks)
	*waiting++
	return false
}

// send begins an event of the level's graph: what follows it there is done before what follows the send.
func (r *Runner) send(n *send, then span) span {
	level, sent := r.level, &r.graph.root.Signals.Get(r.graph.blob)[n.Of]
	if level.graph == nil {
		return then
	}
	e, data := level.graph.find(sent.Hash, n.Key.Get(r)), level.graph.at(level.instance)
	if e == nil || data == nil {
		return then
	}
	parameters := spanOf(&n.Parameters)
	for i, out := range e.Out.Get(level.graph.blob) {
		in := unsafe.Add(r.base, parameters.offset+uint32(i)*input.size())
		if out == 0 {
			continue
		}
		switch to := unsafe.Add(data, out); sent.Parameters.Get(r.graph.blob)[i].Type {
		case Bool:
			*(*bool)(to) = (*In[bool])(in).Get(r)
		case Handle:
			*(*uint64)(to) = (*In[uint64])(in).Get(r)
		default:
			*(*int32)(to) = (*In[int32])(in).Get(r)
		}
	}
	if e.Then.Len() == 0 {
		return then
	}
	if r.next != r.end {
		r.push(span{r.next, r.end})
	}
	if then.count != 0 {
		r.push(span{then.offset, then.offset + then.count*toSize})
	}
	r.next, r.end = 0, 0
	if r.place != level {
		r.push(span{})
		r.unit = r.place
		r.goTo(level)
	}
	return spanOf(&e.Then)
}

// tooMany is the error of a run that took all steps.
func (r *Runner) tooMany() error {
	r.peek()
	l := (*to)(unsafe.Add(r.base, r.next))
	name := r.graph.nameOf(l.Node.Get(r.graph.blob))
	// Clones: who fails its load for this prints it when the region is gone.
	return &StepsError{
		strings.Clone(r.home().Name()), strings.Clone(r.home().nameOf(r.began)), strings.Clone(name), r.steps,
	}
}

// home is the graph that the run began in.
func (r *Runner) home() *Graph {
	if r.unit.graph != nil {
		return r.unit.graph
	}
	return r.graph
}

// nameOf is a node's.
func (g *Graph) nameOf(n *node) string { return g.root.Names.Get(g.blob)[g.index(n)].Get(g.blob) }

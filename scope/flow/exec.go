package flow

import "unsafe"

// run follows the links from next to end, and all that they lead to, for at most `left` steps. It
// reports whether no link is left; otherwise r has the position, and another call continues there.
// This is the runner's only loop. Its most used words are local variables, stored in r only for
// calls, so that most nodes write no memory for them.
func (r *Runner) run(next, end uint32, left int) bool {
	base, data := r.graph.base, r.data
	var then span
	for {
		if next == end {
			if r.top == 0 {
				return true
			}
			r.left = left
			r.pop()
			base, data, next, end, left = r.graph.base, r.data, r.next, r.end, r.left
			continue
		}
		if left == 0 {
			r.next, r.end = next, end
			return false
		}
		left--
		l := (*to)(unsafe.Add(base, next))
		next += toSize
		n := (*node)(unsafe.Add(base, offsetOf(l.Node)))
		switch n.Tag {
		case tagBranch:
			n := (*branch)(unsafe.Pointer(n))
			if !n.If.in(data) {
				then = spanOf(&n.Else)
				goto follow
			}
		case tagGate:
			closed := word(data, stateAt((*gate)(unsafe.Pointer(n)).Closed))
			if l.Port != portIn {
				setGate(closed, l.Port)
				continue
			}
			if *closed != 0 {
				continue
			}
		case tagOnce:
			done := word(data, stateAt((*once)(unsafe.Pointer(n)).Done))
			was := *done
			*done = 1 - l.Port
			if was != 0 || l.Port == portReset {
				continue
			}
		case tagCounter:
			n := (*counter)(unsafe.Pointer(n))
			count := word(data, n.Count)
			*count++
			if l.Port == portReset {
				*count = 0
				continue
			}
			if int32(*count) < n.Limit.in(data) {
				continue
			}
			*count = 0
		case tagSequence:
			n := (*sequence)(unsafe.Pointer(n))
			lists, turn := spanOf(&n.Lists), word(data, n.Next)
			if l.Port == portReset || lists.count == 0 {
				*turn = 0
				continue
			}
			i := *turn
			if i >= lists.count {
				i = 0
			}
			*turn = i + 1
			then = *(*span)(unsafe.Add(base, lists.offset+i*spanSize))
			goto follow
		case tagRandom:
			lists := spanOf(&(*random)(unsafe.Pointer(n)).Lists)
			if lists.count == 0 {
				continue
			}
			then = *(*span)(unsafe.Add(base, lists.offset+below(data, lists.count)*spanSize))
			goto follow
		case tagSetBool:
			n := (*set[bool])(unsafe.Pointer(n))
			*(*bool)(unsafe.Add(data, n.To.at)) = n.Value.in(data)
		case tagSetInt, tagSetNumber:
			n := (*set[int32])(unsafe.Pointer(n))
			*(*int32)(unsafe.Add(data, n.To.at)) = n.Value.in(data)
		case tagSetHandle:
			n := (*set[uint64])(unsafe.Pointer(n))
			*(*uint64)(unsafe.Add(data, n.To.at)) = n.Value.in(data)
		case tagAddInt:
			n := (*add[int32])(unsafe.Pointer(n))
			*(*int32)(unsafe.Add(data, n.To.at)) += n.Value.in(data)
		case tagAddNumber:
			n := (*add[float32])(unsafe.Pointer(n))
			to := (*float32)(unsafe.Add(data, n.To.at))
			if *to += n.Value.in(data); *to != *to {
				*(*uint32)(unsafe.Pointer(to)) = noNumber
			}
		case tagEqualBool:
			n := (*equal[bool])(unsafe.Pointer(n))
			if n.A.in(data) != n.B.in(data) {
				then = spanOf(&n.Else)
				goto follow
			}
		case tagEqualInt:
			n := (*equal[int32])(unsafe.Pointer(n))
			if n.A.in(data) != n.B.in(data) {
				then = spanOf(&n.Else)
				goto follow
			}
		case tagEqualNumber:
			n := (*equal[float32])(unsafe.Pointer(n))
			if n.A.in(data) != n.B.in(data) {
				then = spanOf(&n.Else)
				goto follow
			}
		case tagEqualHandle:
			n := (*equal[uint64])(unsafe.Pointer(n))
			if n.A.in(data) != n.B.in(data) {
				then = spanOf(&n.Else)
				goto follow
			}
		case tagLessInt:
			n := (*less[int32])(unsafe.Pointer(n))
			if n.A.in(data) >= n.B.in(data) {
				then = spanOf(&n.Else)
				goto follow
			}
		case tagLessNumber:
			n := (*less[float32])(unsafe.Pointer(n))
			if !(n.A.in(data) < n.B.in(data)) { // a NaN isn't less
				then = spanOf(&n.Else)
				goto follow
			}
		case tagAction:
			r.next, r.end, r.left = next, end, left
			then = r.act((*action)(unsafe.Pointer(n)))
			base, data, next, end, left = r.graph.base, r.data, r.next, r.end, r.left
			goto follow
		case tagDelay, tagTimer, tagSend:
			r.next, r.end, r.left = next, end, left
			then = r.call(n, l.Port)
			base, data, next, end, left = r.graph.base, r.data, r.next, r.end, r.left
			goto follow
		}
		then = spanOf(&n.Then)
	follow:
		if then.count == 0 {
			continue
		}
		if next != end {
			r.push(span{next, end})
		}
		next, end = then.offset, then.offset+then.count*toSize
	}
}

// noNumber is the NaN of all sums, because processors make different NaNs.
const noNumber = 0x7fc00000

// act calls the host's function, and returns the links to run next. It checks that the action
// didn't free the memory that it reads afterwards.
func (r *Runner) act(n *action) span {
	index := *(*uint32)(unsafe.Add(unsafe.Pointer(r.graph.actions), 4*n.Of))
	r.of.calls[index](r, r.world, unsafe.Add(r.graph.base, spanOf(&n.Parameters).offset))
	if r.of == nil || r.graph.of == nil || r.unit.graph != nil && r.unit.graph.of == nil {
		panic(bug("an action closed the scope of its graph or runner: close it when the event has " +
			"returned"))
	}
	if r.failed != nil {
		return r.fails(n)
	}
	return spanOf(&n.Then)
}

// call runs a node that needs more than a few instructions, and returns the links to run next.
func (r *Runner) call(n *node, port uint32) span {
	then := spanOf(&n.Then)
	if n.Tag == tagSend {
		return r.send((*send)(unsafe.Pointer(n)), then)
	}
	if !wait(r.data, (*delay)(unsafe.Pointer(n)), port) {
		then = span{}
	}
	return then
}

const spanSize = uint32(unsafe.Sizeof(span{}))

// push keeps a range of links for later. A step pushes at most one range, and a send two. One more
// marks the unit that sent.
func (r *Runner) push(s span) {
	*(*span)(unsafe.Add(r.stack, uint32(r.top)*spanSize)) = s
	r.top++
}

// pop continues with the range on the top of the stack. An empty range means that the level's graph
// has run the unit's send.
func (r *Runner) pop() {
	r.top--
	s := (*span)(unsafe.Add(r.stack, uint32(r.top)*spanSize))
	r.next, r.end = s.offset, s.count
	if r.end == 0 {
		r.graph.running = 0
		if !r.goTo(r.unit.graph, r.unit.instance) {
			r.top = 0 // an action freed the instance
		}
		r.unit = place{}
	}
}

func word(data unsafe.Pointer, at stateAt) *uint32 { return (*uint32)(unsafe.Add(data, at)) }

func setGate(closed *uint32, port uint32) {
	switch port {
	case portOpen:
		*closed = 0
	case portClose:
		*closed = 1
	case portToggle:
		*closed ^= 1
	}
}

// below returns a number below n: M. E. O'Neill's PCG of 32 bits.
func below(data unsafe.Pointer, n uint32) uint32 {
	seed := &(*head)(data).random
	x := *seed
	*seed = x*747796405 + 2891336453
	x = (x>>(x>>28+4) ^ x) * 277803737
	x = x>>22 ^ x
	return uint32(uint64(x) * uint64(n) >> 32)
}

// wait starts a delay or timer again, or stops it. It reports whether to go on at once.
func wait(data unsafe.Pointer, n *delay, port uint32) bool {
	left := word(data, n.Left)
	waiting := &(*head)(data).waiting
	ticks := n.Ticks.in(data)
	if n.Tag == tagTimer {
		ticks = max(ticks, 1)
	}
	if *left != 0 {
		*waiting--
		*left = 0
	}
	if port == portStop || ticks <= 0 {
		return port != portStop
	}
	*left = uint32(ticks)
	*waiting++
	return false
}

// send runs an event in the level's graph, before the links of the send.
func (r *Runner) send(n *send, then span) span {
	level, sent := r.level, &r.graph.root.Signals.Get(r.graph.blob)[n.Of]
	if level.graph == nil || level.graph.of == nil {
		return then
	}
	e, data := level.graph.find(eventKey(sent.Hash, n.Key.in(r.data))), level.graph.at(level.instance)
	if e == nil || data == nil {
		return then
	}
	parameters := spanOf(&n.Parameters)
	for i, out := range e.Out.Get(level.graph.blob) {
		in := unsafe.Add(r.graph.base, parameters.offset+uint32(i)*input.size())
		if out == 0 {
			continue
		}
		switch to := unsafe.Add(data, out); sent.Parameters.Get(r.graph.blob)[i].Type {
		case Bool:
			*(*bool)(to) = (*In[bool])(in).in(r.data)
		case Handle:
			*(*uint64)(to) = (*In[uint64])(in).in(r.data)
		default:
			*(*int32)(to) = (*In[int32])(in).in(r.data)
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
		if r.graph != level.graph {
			level.graph.alone()
		}
		r.push(span{})
		r.unit = r.place
		r.goTo(level.graph, level.instance)
	}
	return spanOf(&e.Then)
}

package flow

import "unsafe"

// run follows links until none is left, or so many steps are taken; it says whether none is left. It may
// be called again, and goes on. This is the one loop; what it uses most lies in its own variables.
func (r *Runner) run(steps int) bool {
	base, data := r.base, r.data
	next, end, left := r.next, r.end, steps-r.taken
	for {
		if next == end {
			if r.top == 0 {
				r.next, r.end, r.taken = next, end, steps-left
				return true
			}
			r.pop()
			base, data, next, end = r.base, r.data, r.next, r.end
			continue
		}
		if left == 0 {
			r.next, r.end, r.taken = next, end, steps
			return false
		}
		left--
		l := (*to)(unsafe.Add(base, next))
		next += toSize
		n := (*node)(unsafe.Add(base, offsetOf(l.Node)))
		then := spanOf(&n.Then)
		switch n.Tag {
		case tagBranch:
			n := (*branch)(unsafe.Pointer(n))
			if !n.If.in(data) {
				then = spanOf(&n.Else)
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
		case tagDelay, tagTimer:
			if !wait(data, (*delay)(unsafe.Pointer(n)), l.Port) {
				continue
			}
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
		case tagRandom:
			lists := spanOf(&(*random)(unsafe.Pointer(n)).Lists)
			if lists.count == 0 {
				continue
			}
			then = *(*span)(unsafe.Add(base, lists.offset+below(data, lists.count)*spanSize))
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
			*(*float32)(unsafe.Add(data, n.To.at)) += n.Value.in(data)
		case tagEqualBool:
			n := (*equal[bool])(unsafe.Pointer(n))
			if n.A.in(data) != n.B.in(data) {
				then = spanOf(&n.Else)
			}
		case tagEqualInt:
			n := (*equal[int32])(unsafe.Pointer(n))
			if n.A.in(data) != n.B.in(data) {
				then = spanOf(&n.Else)
			}
		case tagEqualNumber:
			n := (*equal[float32])(unsafe.Pointer(n))
			if n.A.in(data) != n.B.in(data) {
				then = spanOf(&n.Else)
			}
		case tagEqualHandle:
			n := (*equal[uint64])(unsafe.Pointer(n))
			if n.A.in(data) != n.B.in(data) {
				then = spanOf(&n.Else)
			}
		case tagLessInt:
			n := (*less[int32])(unsafe.Pointer(n))
			if n.A.in(data) >= n.B.in(data) {
				then = spanOf(&n.Else)
			}
		case tagLessNumber:
			n := (*less[float32])(unsafe.Pointer(n))
			if !(n.A.in(data) < n.B.in(data)) { // what is no number isn't less
				then = spanOf(&n.Else)
			}
		case tagAction:
			n := (*action)(unsafe.Pointer(n))
			index := *(*uint32)(unsafe.Add(unsafe.Pointer(r.graph.actions), 4*n.Of))
			r.of.calls[index](r, r.world, unsafe.Add(base, spanOf(&n.Parameters).offset))
		case tagSend:
			r.next, r.end = next, end
			then = r.send((*send)(unsafe.Pointer(n)), then)
			base, data, next, end = r.base, r.data, r.next, r.end
		}
		if then.count == 0 {
			continue
		}
		if next != end {
			r.push(span{next, end})
		}
		next, end = then.offset, then.offset+then.count*toSize
	}
}

const spanSize = uint32(unsafe.Sizeof(span{}))

// push keeps a range of links for later: for each step one at most, and two for a send; and one for all
// that a unit sends.
func (r *Runner) push(s span) {
	*(*span)(unsafe.Add(r.stack, uint32(r.top)*spanSize)) = s
	r.top++
}

// pop goes on with the range of links that lies on the stack. The empty one says that what a unit sent is
// done.
func (r *Runner) pop() {
	r.top--
	s := (*span)(unsafe.Add(r.stack, uint32(r.top)*spanSize))
	r.next, r.end = s.offset, s.count
	if r.end == 0 {
		r.graph.running = 0
		if !r.goTo(r.unit) {
			r.top = 0 // an action ended it
		}
		r.unit = place{}
	}
}

// word is one of state.
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

// below gives a number below n: M. E. O'Neill's PCG of 32 bits.
func below(data unsafe.Pointer, n uint32) uint32 {
	seed := &(*head)(data).random
	x := *seed
	*seed = x*747796405 + 2891336453
	x = (x>>(x>>28+4) ^ x) * 277803737
	x = x>>22 ^ x
	return uint32(uint64(x) * uint64(n) >> 32)
}

// wait begins a delay or timer anew, or stops it. It says whether to go on at once.
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

// send begins an event of the level's graph: what follows it there is done before what follows the send.
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
		in := unsafe.Add(r.base, parameters.offset+uint32(i)*input.size())
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
		r.push(span{})
		r.unit = r.place
		r.goTo(level)
	}
	return spanOf(&e.Then)
}

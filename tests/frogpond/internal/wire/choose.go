package wire

import "slices"

// choose makes want into what a client can be given in a number of bytes, where that isn't all.
//
// First come new things, each in its turn by a cursor that goes around the keys; then changes and
// things that are gone, those first whose value the client has had for longest. So none waits for
// ever: at most Things new ones come before there is no room in the view, then one must go before
// one comes, and what went before a change has a newer value after it.
func choose(want, base *View, room int) {
	var list [2 * Things]pair
	var order [2 * Things]uint64 // urgency of a pair, and its place in the list
	n, waiting := pairs(&list, want, base), 0
	for i := range list[:n] {
		if p := &list[i]; !p.done {
			order[waiting] = p.urgency(base.Cursor)<<8 | uint64(i)
			waiting++
		}
	}
	slices.Sort(order[:waiting])
	count := int(base.Count)
	for range 2 { // what goes makes room in the view for what comes
		for _, at := range order[:waiting] {
			p := &list[at&0xff]
			if size := p.size(); !p.done && size <= room && count+p.adds() <= Things {
				room -= size
				count += p.adds()
				p.done = true
				if p.from == nil {
					want.Cursor = p.to.key()
				}
			}
		}
	}
	var things [Things]Thing
	kept := things[:0]
	for i := range list[:n] {
		if t := list[i].after(); t != nil {
			kept = append(kept, *t)
		}
	}
	want.Count = uint16(copy(want.Things[:], kept))
}

// pair is a thing as the client has it, and as it should; nil: there is none.
type pair struct {
	from, to *Thing
	done     bool // the client is given it, or has it
}

// pairs are those of two views, in order.
func pairs(list *[2 * Things]pair, want, base *View) (n int) {
	from, to := base.Shown(), want.Shown()
	for len(from) > 0 || len(to) > 0 {
		p := &list[n]
		n++
		if len(to) == 0 || len(from) > 0 && from[0].key() <= to[0].key() {
			p.from = &from[0]
		}
		if len(from) == 0 || len(to) > 0 && to[0].key() <= from[0].key() {
			p.to = &to[0]
		}
		if p.from != nil {
			from = from[1:]
		}
		if p.to != nil {
			to = to[1:]
		}
		p.done = p.from != nil && p.to != nil && change(p.from, p.to) == 0
	}
	return n
}

// urgency is less for what goes first.
func (p *pair) urgency(cursor uint32) uint64 {
	if p.from == nil {
		return uint64(p.to.key()-cursor-1) & 0xffffff
	}
	return 1<<32 | uint64(p.from.Since)
}

// size is how many bytes its operation has.
func (p *pair) size() int {
	switch {
	case p.from == nil:
		return appear.size()
	case p.to == nil:
		return gone.size()
	}
	return change(p.from, p.to).size()
}

// adds is by how much it changes how many things there are.
func (p *pair) adds() int {
	switch {
	case p.from == nil:
		return 1
	case p.to == nil:
		return -1
	}
	return 0
}

// after is the thing as the client has it in the end.
func (p *pair) after() *Thing {
	if p.done {
		return p.to
	}
	return p.from
}

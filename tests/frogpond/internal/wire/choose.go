package wire

import "slices"

// choose reduces want to a view that room bytes of operations can make from base.
//
// New things come first, each in turn: a cursor moves around the keys. Then come changes and
// removals, the oldest value first. So no thing waits for ever. At most Things new things come
// before the view is full, and then each needs a removal first. A value that was sent is new, so
// older values precede the thing's next change.
func choose(want, base *View, room int) {
	var list [2 * Things]pair
	var order [2 * Things]uint64 // a pair's urgency, and its index in the list
	n, waiting := pairs(&list, want, base), 0
	for i := range list[:n] {
		if p := &list[i]; !p.done {
			order[waiting] = p.urgency(base.Cursor)<<8 | uint64(i)
			waiting++
		}
	}
	slices.Sort(order[:waiting])
	count := int(base.Count)
	for range 2 { // removals make room in the view for new things
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

// pair is a thing as the client has it, and as it should be. Nil stands for an absent thing.
type pair struct {
	from, to *Thing
	done     bool // the client gets this change, or needs none
}

// pairs fills list with the pairs of two views, in order of keys.
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

// urgency returns a smaller number for a more urgent pair.
func (p *pair) urgency(cursor uint32) uint64 {
	if p.from == nil {
		return uint64(p.to.key()-cursor-1) & 0xffffff
	}
	return 1<<32 | uint64(p.from.Since)
}

func (p *pair) size() int {
	switch {
	case p.from == nil:
		return appear.size()
	case p.to == nil:
		return gone.size()
	}
	return change(p.from, p.to).size()
}

// adds returns the change in the number of things by the pair.
func (p *pair) adds() int {
	switch {
	case p.from == nil:
		return 1
	case p.to == nil:
		return -1
	}
	return 0
}

func (p *pair) after() *Thing {
	if p.done {
		return p.to
	}
	return p.from
}

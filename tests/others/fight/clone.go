package fight

import (
	"hash/crc32"
	"maps"
	"slices"
	"unsafe"
)

// The snapshots of the fight on the Go heap: a copy of each field that is a reference, and a sum of
// each field. A new reference needs its line in both.

func (g *hand) clone() *hand {
	c := *g
	moved := map[*handShot]*handShot{nil: nil}
	c.shots = make([]*handShot, len(g.shots))
	for i, s := range g.shots {
		c.shots[i] = s.clone()
		moved[s] = c.shots[i]
	}
	for i, f := range g.fighters {
		c.fighters[i] = f.clone()
		c.fighters[i].last = moved[f.last]
	}
	c.sparks = slices.Clone(g.sparks)
	c.props = make([]*Prop, len(g.props))
	for i, p := range g.props {
		prop := *p
		c.props[i] = &prop
	}
	c.events = slices.Clone(g.events)
	c.rounds = slices.Clone(g.rounds)
	return &c
}

func (f *handFighter) clone() *handFighter {
	c := *f
	c.inputs = slices.Clone(f.inputs)
	c.combo = slices.Clone(f.combo)
	c.buffs = slices.Clone(f.buffs)
	c.trail = slices.Clone(f.trail)
	c.targets = maps.Clone(f.targets)
	return &c
}

func (s *handShot) clone() *handShot {
	c := *s
	c.path = slices.Clone(s.path)
	return &c
}

// byHand keeps the last eight frames.
type byHand struct {
	*hand
	past [8]*hand
}

func (g *byHand) take(frame uint64) error {
	g.past[frame%8] = g.clone()
	return nil
}

func (g *byHand) restore(frame uint64) error {
	g.hand = g.past[frame%8].clone() // the snapshot may be restored again
	return nil
}

func (g *byHand) sum(frame uint64) (uint64, error) {
	p := g.past[frame%8]
	sum := add(0, &p.Match)
	for _, f := range p.fighters {
		sum = add(sum, &f.Fighter)
		sum = addAll(sum, f.inputs)
		sum = addAll(sum, f.combo)
		sum = addAll(sum, f.buffs)
		sum = addAll(sum, f.trail)
		for _, target := range slices.Sorted(maps.Keys(f.targets)) {
			when := f.targets[target]
			sum = add(add(sum, &target), &when)
		}
		last := int32(slices.Index(p.shots, f.last))
		sum = add(sum, &last)
	}
	for _, s := range p.shots {
		sum = addAll(add(sum, &s.Shot), s.path)
	}
	sum = addAll(sum, p.sparks)
	for _, prop := range p.props {
		sum = add(sum, prop)
	}
	sum = addAll(sum, p.events)
	sum = addAll(sum, p.rounds)
	return uint64(sum), nil
}

var table = crc32.MakeTable(crc32.Castagnoli)

func add[T any](sum uint32, x *T) uint32 { return addAll(sum, unsafe.Slice(x, 1)) }

func addAll[T any](sum uint32, list []T) uint32 {
	var zero T
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), len(list)*int(unsafe.Sizeof(zero)))
	return crc32.Update(sum, table, bytes)
}

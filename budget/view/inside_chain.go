package view

import (
	"cmp"
	"slices"

	"github.com/upfront-mem/upfront/budget/inside"
)

// arrows draws the chain of the near end above the rows, from each node to the next older one, if
// the nodes are few.
func (d *insideDrawing) arrows(size uint64) {
	var nodes []*inside.Span
	for i := range d.in.Spans {
		if t := &d.in.Spans[i]; t.Order != 0 && t.Offset < d.in.Cursor {
			nodes = append(nodes, t)
		}
	}
	if len(nodes) > chainMost {
		d.chain = "the chain of " + exact(uint64(len(nodes))) + " nodes isn't drawn"
		return
	}
	if len(nodes) > 1 {
		d.chain = "arrows: the order in which nodes run, newest first"
	}
	slices.SortStableFunc(nodes, func(a, b *inside.Span) int { return cmp.Compare(a.Order, b.Order) })
	for i := 1; i < len(nodes); i++ {
		d.arrow(size, nodes[i-1].Offset, nodes[i].Offset)
	}
}

// arrow draws an arrow from one node to another: an arc within a row, else out at one end and in at
// the other.
func (d *insideDrawing) arrow(size, from, to uint64) {
	s := scale{rowLeft, rowRight, size}
	x, y := s.x(from%size)+30, d.tops[from/size]
	toX, toY := s.x(to%size)+30, d.tops[to/size]
	out, in := rowRight+60, rowLeft-60 // the ends at which it leaves and enters
	if y > toY {
		out, in = in, out
	}
	if y == toY {
		d.path("line", "M%s %s C%s %s %s %s %s %s", x, y-10, x, y-140, toX, y-140, toX, y-30)
	} else {
		d.path("line", "M%s %s v-6 H%s", x, y-10, out)
		d.path("line", "M%s %s H%s v8", in, toY-120, toX)
	}
	d.path("point", "M%s %s l-2.5 -5.5 h5 z", toX, toY-5)
}

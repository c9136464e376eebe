package view

import (
	"cmp"
	"math"
	"slices"
)

// Sizes are whole pixels, so that each target draws the same.
const (
	layerGap = 48 // between layers, for wires to turn; labels take more
	boxGap   = 18 // between the boxes of a layer
	endGap   = 12 // between the ends of wires at a box
	groupGap = 36 // between groups of boxes without a common wire
	margin   = 20
	head     = 84 // height of title and legend
	markHead = 44 // height of the legend of marks
	sweeps   = 8
)

// layOut places the boxes and returns the size of the picture. For each group of linked boxes it
// uses Sugiyama's method: layers sets a box's column, order its rank in the column, and place its
// position. A wire that passes a column has a box without height there, so that nothing else is
// drawn in its way.
//
// For example, A links to B and C, B to C, and C back to A. C -> A closes a circle and is turned
// around. A is in layer 0, B in 1, and C in 2, one past the last box that leads to it. The wires
// between A and C pass layer 1 next to B.
func (p *picture) layOut() (width, height int) {
	groups := p.groups()
	area, tallest := 0, 0
	for _, g := range groups {
		g.layers()
		g.grow()
		g.order()
		g.place()
		area += (g.width + groupGap) * (g.height + groupGap)
		tallest = max(tallest, g.height+groupGap)
	}
	// Groups fill columns below the legend. Their height makes the picture a third wider than high.
	top := head
	if p.marked {
		top += markHead
	}
	column := max(tallest, int(math.Sqrt(float64(area*3/4))))
	x, y, wide := margin, 0, 0
	for _, g := range groups {
		if y > 0 && y+g.height > column {
			x, y, wide = x+wide+groupGap, 0, 0
		}
		for _, b := range g.boxes {
			b.x, b.y = b.x+x, b.y+y+top
		}
		y, wide = y+g.height+groupGap, max(wide, g.width)
		width, height = max(width, x+wide), max(height, y)
	}
	return width + margin, height + top
}

// group is a set of linked boxes, and their wires in pieces from layer to layer.
type group struct {
	boxes         []*box
	wires         []*wire
	inLayer       [][]*box
	width, height int
}

// groups returns the linked groups, in the order of each group's first box.
func (p *picture) groups() (list []*group) {
	leader := make([]int, len(p.boxes))
	for i := range leader {
		leader[i] = i
	}
	of := func(i int) int {
		for leader[i] != i {
			leader[i] = leader[leader[i]]
			i = leader[i]
		}
		return i
	}
	for _, w := range p.wires {
		a, b := of(w.from.index), of(w.to.index)
		leader[max(a, b)] = min(a, b)
	}
	at := map[int]*group{}
	for i, b := range p.boxes {
		first := of(i)
		if at[first] == nil {
			at[first] = &group{}
			list = append(list, at[first])
		}
		at[first].boxes = append(at[first].boxes, b)
	}
	for _, w := range p.wires {
		g := at[of(w.from.index)]
		g.wires = append(g.wires, w)
	}
	return list
}

// layers gives each box a layer to the right of all boxes that lead to it. Wires that close a
// circle are turned around first.
func (g *group) layers() {
	out, in := map[*box][]*wire{}, map[*box]int{}
	for _, w := range g.wires {
		out[w.from] = append(out[w.from], w)
		in[w.to]++
	}
	const walking, done = 1, 2
	state := map[*box]int{}
	var sorted []*box // a box comes after all to which it leads
	var walk func(*box)
	walk = func(b *box) {
		state[b] = walking
		for _, w := range out[b] {
			switch {
			case state[w.to] == walking:
				w.back = true
			case state[w.to] == 0:
				walk(w.to)
			}
		}
		state[b] = done
		sorted = append(sorted, b)
	}
	// boxes that no wire leads to come first, then those on circles
	for _, first := range []bool{true, false} {
		for _, b := range g.boxes {
			if state[b] == 0 && (in[b] == 0) == first {
				walk(b)
			}
		}
	}
	slices.Reverse(sorted)
	after := map[*box][]*box{}
	for _, w := range g.wires {
		l, r := w.ends()
		after[l] = append(after[l], r)
	}
	for _, b := range sorted {
		for _, r := range after[b] {
			if r != b {
				r.layer = max(r.layer, b.layer+1)
			}
		}
	}
	for _, b := range sorted { // a source moves next to its nearest target
		if in[b] > 0 || len(out[b]) == 0 {
			continue
		}
		least := math.MaxInt
		for _, w := range out[b] {
			least = min(least, w.to.layer)
		}
		b.layer = max(b.layer, least-1)
	}
	deepest := 0
	for _, b := range g.boxes {
		deepest = max(deepest, b.layer)
	}
	g.inLayer = make([][]*box, deepest+1)
	add := func(b *box) { g.inLayer[b.layer] = append(g.inLayer[b.layer], b) }
	for _, b := range g.boxes {
		add(b)
	}
	for _, w := range g.wires {
		l, r := w.ends()
		w.via = []*box{l}
		for layer := l.layer + 1; layer < r.layer; layer++ {
			bend := &box{layer: layer, bend: true}
			add(bend)
			g.boxes = append(g.boxes, bend)
			w.via = append(w.via, bend)
		}
		w.via = append(w.via, r)
	}
}

// ends returns the left and the right end of a wire.
func (w *wire) ends() (l, r *box) {
	if w.back {
		return w.to, w.from
	}
	return w.from, w.to
}

// neighbours returns the boxes joined to each box by a piece of wire, on its left and on its right.
func (g *group) neighbours() (left, right map[*box][]*box) {
	left, right = map[*box][]*box{}, map[*box][]*box{}
	for _, w := range g.wires {
		for i := 1; i < len(w.via); i++ {
			a, b := w.via[i-1], w.via[i]
			right[a] = append(right[a], b)
			left[b] = append(left[b], a)
		}
	}
	return left, right
}

// grow makes boxes high enough for the ends of their wires.
func (g *group) grow() {
	left, right := g.neighbours()
	for _, b := range g.boxes {
		if ends := max(len(left[b]), len(right[b])); ends > 1 && !b.bend {
			b.h = max(b.h, endGap*(ends+1))
		}
	}
}

// sweep visits the layers forwards and backwards, with the neighbours in the layer visited before.
func (g *group) sweep(do func(layer []*box, beside map[*box][]*box)) {
	left, right := g.neighbours()
	for sweep := range sweeps {
		for i := range g.inLayer {
			if sweep%2 == 0 {
				do(g.inLayer[i], left)
			} else {
				do(g.inLayer[len(g.inLayer)-1-i], right)
			}
		}
	}
}

// wish returns the mean place of a box's neighbours, or its own place if it has none.
func (box *box) wish(beside []*box, at func(*box) int) int {
	if len(beside) == 0 {
		return at(box)
	}
	sum := 0
	for _, other := range beside {
		sum += at(other)
	}
	return sum / len(beside)
}

// order sorts each layer by the ranks of the neighbours, so that fewer wires cross.
func (g *group) order() {
	rank := func(layer []*box) {
		for i, b := range layer {
			b.rank = i
		}
	}
	for _, layer := range g.inLayer {
		rank(layer)
	}
	g.sweep(func(layer []*box, beside map[*box][]*box) {
		for _, b := range layer {
			b.want = b.wish(beside[b], func(b *box) int { return b.rank << 10 })
		}
		slices.SortStableFunc(layer, func(a, b *box) int { return cmp.Compare(a.want, b.want) })
		rank(layer)
	})
}

// place sets the places of the boxes, each as close to the mean of its neighbours as the boxes
// above and below allow. Between two layers there is room for labels at either side, where wires
// are straight, and for wires to turn.
func (g *group) place() {
	for _, w := range g.wires {
		b, atEnd := w.labelled()
		if w.from == w.to {
			continue
		}
		if atEnd {
			b.before = max(b.before, w.noteWidth())
		} else {
			b.after = max(b.after, w.noteWidth())
		}
	}
	x := 0
	for _, layer := range g.inLayer {
		wide, before, after, y := 0, 0, 0, 0
		for _, b := range layer {
			wide, before = max(wide, b.w), max(before, b.before)
		}
		for _, b := range layer {
			after = max(after, b.w+b.after-wide)
		}
		x += before
		for _, b := range layer {
			if b.bend {
				b.w = wide
			}
			b.x, b.y, b.before, b.after = x, y, before, wide+after-b.w
			y += b.h + boxGap
		}
		g.width = x + wide
		x += wide + after + layerGap
	}
	g.sweep(func(layer []*box, beside map[*box][]*box) {
		for _, b := range layer {
			b.want = b.wish(beside[b], (*box).middle) - b.h/2
		}
		settle(layer)
	})
	top, bottom := math.MaxInt, 0
	for _, b := range g.boxes {
		top = min(top, b.y)
	}
	for _, b := range g.boxes {
		b.y -= top
		bottom = max(bottom, b.y+b.h)
	}
	g.height = bottom
}

// settle places the boxes of a layer where they want to be. Boxes that would overlap share the mean
// of their wishes (isotonic regression, by pooling neighbours that violate the order). For example,
// two boxes of height 10 with wishes 0 and 4 settle at -12 and 16, boxGap apart.
func settle(layer []*box) {
	type pool struct{ first, count, sum int }
	var pools []pool
	offset := 0
	offsets := make([]int, len(layer))
	for i, b := range layer {
		offsets[i] = offset
		pools = append(pools, pool{i, 1, b.want - offset})
		for n := len(pools); n > 1 &&
			pools[n-1].sum*pools[n-2].count < pools[n-2].sum*pools[n-1].count; n = len(pools) {
			pools[n-2].count += pools[n-1].count
			pools[n-2].sum += pools[n-1].sum
			pools = pools[:n-1]
		}
		offset += b.h + boxGap
	}
	for _, p := range pools {
		y := p.sum / p.count
		for i := p.first; i < p.first+p.count; i++ {
			layer[i].y = y + offsets[i]
		}
	}
}

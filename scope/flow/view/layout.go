package view

import (
	"cmp"
	"math"
	"slices"
)

// Pixels. All is whole numbers, so that each target draws the same.
const (
	layerGap = 64 // between layers: where wires turn
	boxGap   = 18 // between the boxes of a layer
	endGap   = 12 // between the ends of wires at a box
	groupGap = 36 // between groups of boxes that no wire joins
	margin   = 20
	head     = 84 // what the title and the legend take
	sweeps   = 8
)

// layOut gives each box a place: Sugiyama's layers, left to right, for each group of boxes that
// wires join. A wire that passes a layer gets a place there as if it were a box. It returns the
// size of the picture.
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
	// Groups fill columns of a height that makes the picture a third wider than high.
	column := max(tallest, int(math.Sqrt(float64(area*3/4))))
	x, y, wide := margin, 0, 0
	for _, g := range groups {
		if y > 0 && y+g.height > column {
			x, y, wide = x+wide+groupGap, 0, 0
		}
		for _, b := range g.boxes {
			b.x, b.y = b.x+x, b.y+y+head
		}
		y, wide = y+g.height+groupGap, max(wide, g.width)
		width, height = max(width, x+wide), max(height, y)
	}
	return width + margin, height + head
}

// group is boxes that wires join, and the stretches of wires from layer to layer.
type group struct {
	boxes         []*box
	wires         []*wire
	inLayer       [][]*box
	width, height int
}

// groups is the boxes by what joins them, in the order of each group's first.
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

// layers gives each box the layer right of all that lead to it, after turning the wires that close
// a circle.
func (g *group) layers() {
	out, in := map[*box][]*wire{}, map[*box]int{}
	for _, w := range g.wires {
		out[w.from] = append(out[w.from], w)
		in[w.to]++
	}
	const walking, done = 1, 2
	state := map[*box]int{}
	var sorted []*box // a box after all that it leads to
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
	for _, first := range []bool{true, false} { // where nothing leads to, then what lies on circles
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
	for _, b := range sorted { // a source stands close to what it is for
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

// ends is the left and the right end of a wire.
func (w *wire) ends() (l, r *box) {
	if w.back {
		return w.to, w.from
	}
	return w.from, w.to
}

// neighbours is, for each box, those that a stretch of wire joins it to: left and right of it.
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

// grow makes room for the ends of all wires at the sides of the boxes, and for what stands at them.
func (g *group) grow() {
	left, right := g.neighbours()
	for _, b := range g.boxes {
		if ends := max(len(left[b]), len(right[b])); ends > 1 && !b.bend {
			b.h = max(b.h, endGap*(ends+1))
		}
	}
}

// sweep goes over the layers to and fro, and gives each with the neighbours on the side that it comes from.
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

// wish is the middle of where a box's neighbours are, or where it is itself when it has none.
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

// order sorts each layer by where its neighbours stand, so that wires cross less.
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

// place gives the boxes their places: each as close to the middle of its neighbours as those above
// and below allow.
func (g *group) place() {
	x := 0
	for _, layer := range g.inLayer {
		wide, y := 0, 0
		for _, b := range layer {
			wide = max(wide, b.w)
			b.x, b.y = x, y
			y += b.h + boxGap
		}
		for _, b := range layer {
			if b.bend {
				b.w = wide
			}
		}
		g.width = x + wide
		x += wide + layerGap
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

// settle places the boxes of a layer where they want to be; those that would overlap share the
// middle of their wishes (isotonic regression: neighbours that violate the order are pooled).
func settle(layer []*box) {
	type pool struct{ first, count, sum int }
	var pools []pool
	offset := 0
	offsets := make([]int, len(layer))
	for i, b := range layer {
		offsets[i] = offset
		pools = append(pools, pool{i, 1, b.want - offset})
		for n := len(pools); n > 1 && pools[n-1].sum*pools[n-2].count < pools[n-2].sum*pools[n-1].count; n = len(pools) {
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

package index

import (
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// The world is a square of side units, cut into cells. An entity is in the cell of its box's first
// corner. So that a search knows how far to look, no box is larger than reach.
const (
	shift = 10 // of a cell's side
	cells = 64 // in a row
	side  = cells << shift
	reach = 128
)

// Box is a rectangle, edges included.
type Box struct{ MinX, MinY, MaxX, MaxY int32 }

func (b Box) overlaps(c Box) bool {
	return b.MinX <= c.MaxX && c.MinX <= b.MaxX && b.MinY <= c.MaxY && c.MinY <= b.MaxY
}

// ID names an entity of a grid. It is stale, and finds nothing, in a tick before the entity's
// insertion or after its removal.
type ID = arena.Handle[entity]

// entity has 32 bytes, and no padding.
type entity struct {
	box    Box
	next   arena.Ptr[entity] // in its cell
	number uint32            // of the game
	cell   uint32
}

// Grid is an index of up to n boxes. All its memory is of one scope, and refers to itself by
// offsets, so a snapshot of a state has the whole index.
type Grid struct {
	entities scope.HandlePool[entity]
	first    []arena.Ptr[entity] // of each cell
	base     arena.Base
}

var (
	entityMaker = scope.Plain[entity]()
	firstMaker  = scope.Plain[arena.Ptr[entity]]()
)

// NewGrid allocates a grid for n boxes in s, a scope of region r.
func NewGrid(r budget.Region, s scope.Scope, n int) *Grid {
	return &Grid{entityMaker.HandlePool(s, n), firstMaker.Slice(s, cells*cells), r.Base()}
}

// In has snapshots from outside checked, for a grid in the state st: each live entity, and no other
// value, is in the list of its cell.
func (g *Grid) In(st *save.State) {
	save.Values(st, g.first)
	st.Verify(func(v save.View) error {
		first, listed, live := save.SliceAt(v, g.first), 0, 0
		for cell := range first {
			for e := save.Get(v, first[cell]); e != nil; e = save.Get(v, e.next) {
				if listed++; listed > g.entities.Cap() {
					return fmt.Errorf("index: the list of cell %d has no end", cell)
				}
			}
		}
		for id, e := range save.AllHandles(v, g.entities) {
			live++
			if !e.box.fits() || e.box.cell() != e.cell {
				return fmt.Errorf("index: entity %#x in cell %d has the box %v", id, e.cell, e.box)
			}
			it := save.Get(v, first[e.cell])
			for it != nil && it != e {
				it = save.Get(v, it.next)
			}
			if it == nil {
				return fmt.Errorf("index: entity %#x isn't in the list of cell %d", id, e.cell)
			}
		}
		if live != listed {
			return fmt.Errorf("index: %d entities are in the cells' lists, and %d are live", listed, live)
		}
		return nil
	})
}

// Insert adds a box with the game's number. It fails if the box is outside the world or larger than
// reach, or if the grid has n boxes.
func (g *Grid) Insert(number uint32, box Box) (ID, error) {
	if !box.fits() {
		return 0, fmt.Errorf("index: the box %v is outside the world of %d, or larger than %d", box, side, reach)
	}
	e, id := g.entities.Get()
	if e == nil {
		return 0, fmt.Errorf("index: %d of %[1]d boxes are in the grid; make it with a larger n", g.entities.Cap())
	}
	e.box, e.number = box, number
	g.link(e, box.cell())
	return id, nil
}

// Remove removes the box of id. It reports whether id was in the grid.
func (g *Grid) Remove(id ID) bool {
	e := g.entities.At(id)
	if e == nil {
		return false
	}
	g.unlink(e)
	g.entities.Put(id)
	return true
}

var errMove = errors.New("index: Move of a stale ID, or to a box outside the world")

// Move gives id another box. It fails if id isn't in the grid, or for a box that Insert refuses.
func (g *Grid) Move(id ID, to Box) error {
	e := g.entities.At(id)
	if e == nil || !to.fits() {
		return errMove
	}
	e.box = to
	if cell := to.cell(); cell != e.cell {
		g.unlink(e)
		g.link(e, cell)
	}
	return nil
}

// At returns the box of id; ok is false if id isn't in the grid.
func (g *Grid) At(id ID) (box Box, ok bool) {
	if e := g.entities.At(id); e != nil {
		return e.box, true
	}
	return Box{}, false
}

// Search calls visit for each box that overlaps area, until visit returns false.
func (g *Grid) Search(area Box, visit func(number uint32, box Box) bool) {
	fromX, toX := column(area.MinX-reach), column(area.MaxX)
	fromY, toY := column(area.MinY-reach), column(area.MaxY)
	for y := fromY; y <= toY; y++ {
		for _, first := range g.first[y*cells+fromX : y*cells+toX+1] {
			for e := first.Get(g.base); e != nil; e = e.next.Get(g.base) {
				if e.box.overlaps(area) && !visit(e.number, e.box) {
					return
				}
			}
		}
	}
}

func (g *Grid) link(e *entity, cell uint32) {
	e.cell, e.next = cell, g.first[cell]
	g.first[cell] = arena.PtrTo(g.base, e)
}

// unlink walks the cell's list, which has five entities on average.
func (g *Grid) unlink(e *entity) {
	at := &g.first[e.cell]
	for it := at.Get(g.base); it != e; it = at.Get(g.base) {
		at = &it.next
	}
	*at = e.next
}

func (b Box) fits() bool {
	return 0 <= b.MinX && b.MinX <= b.MaxX && b.MaxX < side && b.MaxX-b.MinX <= reach &&
		0 <= b.MinY && b.MinY <= b.MaxY && b.MaxY < side && b.MaxY-b.MinY <= reach
}

func (b Box) cell() uint32 { return uint32(column(b.MinY)*cells + column(b.MinX)) }

func column(x int32) int32 { return min(max(x, 0), side-1) >> shift }

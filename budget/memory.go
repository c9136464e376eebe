package budget

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
)

// supply is where a budget has its memory from.
type supply interface {
	Base() unsafe.Pointer
	Size() uint64
	Missing() (pages int, ok bool)
	Release() error
}

// layout is a plan in bytes.
type layout struct {
	arenas []arena_c.Arena
	shape  arena_c.Map // rows, slots and pools
	tables uint64      // bytes at the bottom
	size   uint64      // of all, tables included
}

func (p Plan) layout() (l layout, err error) {
	if err := p.notYet(); err != nil {
		return l, err
	}
	l.arenas = p.arenas()
	l.shape = arena_c.Map{Rows: p.rows(), Slots: uint64(p.Limits.Scopes), Pools: uint64(p.Limits.Pools), Guard: p.guard()}
	l.size = arena_c.MapSize(l.arenas, l.shape.Slots, l.shape.Pools, l.shape.Guard)
	l.tables = l.size - p.total() - l.shape.Guard
	if l.size != 0 && p.Size != 0 {
		l.size = l.tables + l.shape.Guard + planRound(p.Size)
	}
	if l.size == 0 || l.size >= arena_c.OffsetMax {
		return l, fmt.Errorf("the plan and its tables need %s or more; lower a size or limits", sizeText(arena_c.OffsetMax))
	}
	return l, nil
}

// Need is the number of bytes that the plan needs of a block (OpenIn), wherever it begins; the tables are among them.
func (p Plan) Need() (uint64, error) {
	if err := p.Check(); err != nil {
		return 0, err
	}
	l, err := p.resolved().layout()
	return l.size + arena_c.Edge, err
}

// fromSystem takes a range and makes it accessible and present. The range of an earlier budget has its tables still, and
// handles into them may be kept: it is taken only where the tables have the same shape, so that each handle finds its own
// words, dead.
func fromSystem(l layout) (memory supply, prefaulted bool, err error) {
	var others []*platform.Reservation
	defer func() {
		for _, other := range others {
			err = errors.Join(err, other.Release())
		}
	}()
	for {
		r, err := platform.Reserve(l.size, arena_c.Edge, l.tables)
		if err != nil {
			return nil, false, err
		}
		if err := r.Commit(); err != nil {
			return nil, false, errors.Join(err, r.Release())
		}
		if hasShape(r.Base(), l.shape) {
			if prefaulted, err = r.Prefault(); err != nil {
				return nil, false, errors.Join(err, r.Release())
			}
			return r, prefaulted, nil
		}
		others = append(others, r)
	}
}

// hasShape says whether tables of the shape may be laid out at base: over nothing, or over their like.
func hasShape(base unsafe.Pointer, shape arena_c.Map) bool {
	old := (*arena_c.Map)(base)
	return old.Magic == 0 || sameShape(*old, shape)
}

func sameShape(a, b arena_c.Map) bool {
	return a.Rows == b.Rows && a.Slots == b.Slots && a.Pools == b.Pools && a.Guard == b.Guard
}

// given is a block that belongs to somebody else. It keeps the block alive where that is a Go value.
type given struct {
	block []byte
	base  unsafe.Pointer
	size  uint64
}

func (g given) Base() unsafe.Pointer          { return g.base }
func (g given) Size() uint64                  { return g.size }
func (g given) Missing() (pages int, ok bool) { return 0, false }
func (g given) Release() error                { return nil }

func fromBlock(block []byte, l layout) (memory supply, prefaulted bool, err error) {
	start := unsafe.Pointer(unsafe.SliceData(block))
	skip := -uint64(uintptr(start)) & (arena_c.Edge - 1)
	if start == nil || uint64(len(block)) < skip || uint64(len(block))-skip < l.size {
		return nil, false, fmt.Errorf("the block has %d bytes, the plan needs %d (Plan.Need)", len(block), l.size+arena_c.Edge)
	}
	base := unsafe.Add(start, skip)
	arena_c.Unpoison(base, l.size)
	// What is there may be anything. Only tables that a budget of this shape left are worth keeping: their handles stay dead.
	if old := (*arena_c.Map)(base); old.Magic != arena_c.MapMagic || !sameShape(*old, l.shape) {
		clear(unsafe.Slice((*byte)(base), l.tables))
	}
	return given{block, base, l.size}, false, nil
}

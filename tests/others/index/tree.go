package index

import "github.com/tidwall/rtree"

// tree is a world in a tree of tidwall's, with its copies as history.
type tree struct {
	now     *rtree.RTreeGN[int32, uint32]
	boxes   []Box // by number
	history bool
	past    [ticks]*rtree.RTreeGN[int32, uint32]
}

func openTree(history bool) *tree {
	return &tree{now: new(rtree.RTreeGN[int32, uint32]), boxes: make([]Box, entities), history: history}
}

func (b Box) corners() (lo, hi [2]int32) { return [2]int32{b.MinX, b.MinY}, [2]int32{b.MaxX, b.MaxY} }

func (t *tree) insert(number uint32, box Box) error {
	lo, hi := box.corners()
	t.now.Insert(lo, hi, number)
	t.boxes[number] = box
	return nil
}

func (t *tree) remove(number uint32) {
	lo, hi := t.boxes[number].corners()
	t.now.Delete(lo, hi, number)
}

func (t *tree) move(number uint32, box Box) error {
	t.remove(number)
	return t.insert(number, box)
}

func (t *tree) at(number uint32) Box { return t.boxes[number] }

func (t *tree) near(area Box) uint64 { return nearIn(t.now, area) }

func nearIn(of *rtree.RTreeGN[int32, uint32], area Box) (sum uint64) {
	lo, hi := area.corners()
	of.Search(lo, hi, func(_, _ [2]int32, number uint32) bool {
		sum += uint64(number)
		return true
	})
	return sum
}

func (t *tree) take(tick uint64) error {
	if t.history {
		t.past[tick%ticks] = t.now.Copy()
	}
	return nil
}

func (t *tree) look(tick uint64, shots *[rays]shot) (sum uint64, err error) {
	for _, s := range shots {
		of := t.now
		if t.history {
			of = t.past[(tick-s.age)%ticks]
		}
		sum += nearIn(of, s.at)
	}
	return sum, nil
}

func (t *tree) bound() string { return "none: the tree grows, and old copies wait for the collector" }
func (t *tree) close() error  { return nil }

package doom_test

import (
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom/doomtest"
)

// blocks holds the cells of a loaded map.
type blocks struct {
	x, y          int32
	columns, rows int
	lists         [][]uint16
}

// blocksOf loads a map, with a BLOCKMAP unless blockmap is nil, and returns its cells.
func blocksOf(t *testing.T, b *budget.Budget, lumps []doom.Lump, blockmap []byte) (is blocks) {
	t.Helper()
	if blockmap != nil {
		lumps = doomtest.Set(slices.Clone(lumps), "BLOCKMAP", blockmap)
	}
	require.NoError(t, loadEach(t, b, doom.MakeWAD(lumps), func(l *doom.Level) {
		is = blocks{x: l.Blocks.X, y: l.Blocks.Y, columns: l.Blocks.Columns, rows: l.Blocks.Rows}
		for cell := range l.Blocks.Cells {
			is.lists = append(is.lists, slices.Clone(l.Near(cell)))
		}
	}))
	return is
}

// A BLOCKMAP that is malformed, or doesn't agree with the lines, is replaced by one built from the
// lines.
func TestWrongBlockmapsAreBuilt(t *testing.T) {
	b := open(t)
	built := blocksOf(t, b, doomtest.GoodMap(), nil)
	assert.NotEqual(t, built, blocksOf(t, b, doomtest.GoodMap(), doomtest.GoodBlockmap()), "the control")
	for name, blockmap := range doomtest.WrongBlockmaps() {
		assert.Equal(t, built, blocksOf(t, b, doomtest.GoodMap(), blockmap), name)
	}
}

// Lists that would take minutes to search are also replaced.
func TestLongListsAreBuilt(t *testing.T) {
	b := open(t)
	const lines = 3000
	lumps := doomtest.GoodMap()
	list := append(make([]int, 60_000), 1, 2, 3)
	for i := range lines {
		lumps[2].Data = append(lumps[2].Data, doomtest.Row(0, 2, 1, 0, 0, 0, 0xffff)...)
		list = append(list, 4+i)
	}
	words := []int{0, 0, 5, 5}
	for range 25 {
		words = append(words, 4+25)
	}
	long := doomtest.Row(append(append(words, list...), 0xffff)...)
	assert.Equal(t, blocksOf(t, b, lumps, nil), blocksOf(t, b, lumps, long))
}

// A line that stops no body may be missing in all lists, but not in some.
func TestIdleLines(t *testing.T) {
	b := open(t)
	const flags, special, front = 2, 3, 5 // words of a line
	withLine := func(change func(line, sector []byte)) []doom.Lump {
		lumps := doomtest.GoodMap() // its lumps are linedefs 2, sectors 5
		line := doomtest.Row(0, 2, doom.TwoSided, 0, 0, 0, 1)
		change(line, lumps[5].Data)
		lumps[2].Data = append(lumps[2].Data, line...)
		return lumps
	}
	set := func(row []byte, word, value int) { binary.LittleEndian.PutUint16(row[2*word:], uint16(value)) }
	some := append(doomtest.GoodBlockmap(), doomtest.Row(0, 0, 1, 2, 3, 4, 0xffff)...)
	copy(some[8:], doomtest.Row(4+25+6))
	for name, test := range map[string]struct {
		change   func(line, sector []byte)
		blockmap []byte
		taken    bool
	}{
		"a step of no height": {func(_, _ []byte) {}, doomtest.GoodBlockmap(), true},
		"in one cell":         {func(_, _ []byte) {}, some, false},
		"impassable": {func(line, _ []byte) { set(line, flags, doom.TwoSided|doom.Impassable) },
			doomtest.GoodBlockmap(), false},
		"special": {func(line, _ []byte) { set(line, special, 1) }, doomtest.GoodBlockmap(), false},
		"tagged":  {func(_, sector []byte) { set(sector, 12, 7) }, doomtest.GoodBlockmap(), false},
		"a wall":  {func(line, _ []byte) { set(line, front+1, 0xffff) }, doomtest.GoodBlockmap(), false},
		"a wall of what's shut": {func(line, sector []byte) {
			set(line, front+1, 0xffff)
			set(sector, 1, 0)
		}, doomtest.GoodBlockmap(), true},
	} {
		lumps := withLine(test.change)
		is := blocksOf(t, b, lumps, test.blockmap)
		assert.Equal(t, test.taken, !assert.ObjectsAreEqual(is, blocksOf(t, b, lumps, nil)), name)
	}
}

// A correct BLOCKMAP is taken, for any lines, with and without a 0 before each list. If a list
// lacks a line, the BLOCKMAP is replaced.
func TestBlockmapsByTheBook(t *testing.T) {
	b := open(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		lumps, lines := randomLines(random)
		given := byTheBook(lines)
		first := []int{0}
		if given.columns > 1 && random.IntN(2) == 0 {
			first = nil // line 0 is only in the first column, so some list starts with another word
		}
		is := blocksOf(t, b, lumps, given.lump(given.lists, first...))
		require.Equal(t, given, is)

		cell := random.IntN(len(given.lists))
		for len(given.lists[cell]) == 0 {
			cell = random.IntN(len(given.lists))
		}
		at := random.IntN(len(given.lists[cell]))
		lacks := slices.Clone(given.lists)
		lacks[cell] = slices.Delete(slices.Clone(lacks[cell]), at, at+1)
		is = blocksOf(t, b, lumps, given.lump(lacks, first...))
		require.Equal(t, blocksOf(t, b, lumps, nil), is, "line %d, cell %d", given.lists[cell][at], cell)
	}
}

// randomLines returns a map of walls; their ends are often on the edges of cells.
func randomLines(random *rand.Rand) (lumps []doom.Lump, lines [][4]int) {
	lumps = doomtest.GoodMap()
	var lineRows, vertexRows []byte
	at := func() int {
		if v := random.IntN(900) - 300; random.IntN(2) == 0 {
			return v
		}
		return 128*random.IntN(7) - 300
	}
	line := func(l [4]int) {
		lineRows = append(lineRows, doomtest.Row(2*len(lines), 2*len(lines)+1, 1, 0, 0, 0, 0xffff)...)
		vertexRows = append(vertexRows, doomtest.Row(l[:]...)...)
		lines = append(lines, l)
	}
	line([4]int{-300, -300, -300, 600}) // the grid begins at its corner
	for range 1 + random.IntN(12) {
		l := [4]int{at(), at(), at(), at()}
		switch random.IntN(4) {
		case 0:
			l[2] = l[0]
		case 1:
			l[3] = l[1]
		}
		line(l)
	}
	return doomtest.Set(doomtest.Set(lumps, "LINEDEFS", lineRows), "VERTEXES", vertexRows), lines
}

// byTheBook lists each line in the cells that have more than one point of it. A line along an edge
// is in the cell that has it as its left or lower edge.
func byTheBook(lines [][4]int) blocks {
	maxX, maxY := -300, -300
	for _, l := range lines {
		maxX, maxY = max(maxX, l[0], l[2]), max(maxY, l[1], l[3])
	}
	is := blocks{x: -300, y: -300, columns: (maxX+300)/128 + 1, rows: (maxY+300)/128 + 1}
	is.lists = make([][]uint16, is.columns*is.rows)
	for i := range is.lists {
		is.lists[i] = []uint16{}
		x, y := -300+i%is.columns*128, -300+i/is.columns*128
		for k, l := range lines {
			if l[0] == l[2] && l[1] == l[3] {
				continue
			}
			from, to := big.NewRat(0, 1), big.NewRat(1, 1) // the part of the line within the cell
			if clip(l[0], l[2]-l[0], x, from, to) && clip(l[1], l[3]-l[1], y, from, to) && from.Cmp(to) < 0 {
				is.lists[i] = append(is.lists[i], uint16(k))
			}
		}
	}
	return is
}

// clip narrows the range from..to to the part of a line whose coordinate is in a cell. It reports
// whether a part is left.
func clip(start, d, low int, from, to *big.Rat) bool {
	if d == 0 {
		return low <= start && start < low+128
	}
	ends := []*big.Rat{big.NewRat(int64(low-start), int64(d)), big.NewRat(int64(low+128-start), int64(d))}
	slices.SortFunc(ends, (*big.Rat).Cmp)
	if ends[0].Cmp(from) > 0 {
		from.Set(ends[0])
	}
	if ends[1].Cmp(to) < 0 {
		to.Set(ends[1])
	}
	return true
}

// lump returns a BLOCKMAP with these lists, each after the words first.
func (b *blocks) lump(lists [][]uint16, first ...int) []byte {
	words := []int{int(b.x), int(b.y), b.columns, b.rows}
	var rows []int
	for _, list := range lists {
		words = append(words, 4+len(lists)+len(rows))
		rows = append(rows, first...)
		for _, line := range list {
			rows = append(rows, int(line))
		}
		rows = append(rows, 0xffff)
	}
	return doomtest.Row(append(words, rows...)...)
}

package plain_test

import (
	"fmt"
	"reflect"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/arena/plain"
)

type (
	goal struct {
		At    [2]int16
		Own   bool
		Score complex64
	}
	match struct {
		_     [3]byte
		Goals [2]goal
		None  [0]goal
		Link  *goal
		Last  int8
	}
)

// lines returns a walk as text, without the parts of the part whose path is skip.
func lines(t reflect.Type, skip string) (list []string) {
	plain.Walk(plain.Go(t), func(p plain.Part) (into bool) {
		list = append(list, fmt.Sprintf("%s %q %v at %d of %d", p.Path, p.Name, p.Kind, p.Offset, p.Size))
		return p.Path != skip
	})
	return list
}

func TestWalk(t *testing.T) {
	size, funcs, tail := 56, 24, []string{
		`match.None "" invalid at 36 of 4`,
		`match.Link "Link" ptr at 40 of 8`,
		`match.Last "Last" int8 at 48 of 1`,
		`match.Last "" invalid at 49 of 7`,
	}
	if strconv.IntSize == 32 {
		size, funcs, tail = 44, 12, []string{
			`match.Link "Link" ptr at 36 of 4`,
			`match.Last "Last" int8 at 40 of 1`,
			`match.Last "" invalid at 41 of 3`,
		}
	}
	assert.Equal(t, append([]string{
		fmt.Sprintf(`match "" struct at 0 of %d`, size),
		`match._ "_" array at 0 of 3`,
		`match._[0] "" uint8 at 0 of 1`,
		`match._ "" invalid at 3 of 1`,
		`match.Goals "Goals" array at 4 of 32`,
		`match.Goals[0] "" struct at 4 of 16`,
		`match.Goals[0].At "At" array at 4 of 4`,
		`match.Goals[0].At[0] "" int16 at 4 of 2`,
		`match.Goals[0].Own "Own" bool at 8 of 1`,
		`match.Goals[0].Own "" invalid at 9 of 3`,
		`match.Goals[0].Score "Score" complex64 at 12 of 8`,
		`match.None "None" array at 36 of 0`,
	}, tail...), lines(reflect.TypeFor[match](), ""))
	assert.Equal(t, []string{
		`goal "" struct at 0 of 16`,
		`goal.At "At" array at 0 of 4`,
		`goal.Own "Own" bool at 4 of 1`,
		`goal.Own "" invalid at 5 of 3`,
		`goal.Score "Score" complex64 at 8 of 8`,
	}, lines(reflect.TypeFor[goal](), "goal.At"))
	assert.Equal(t, []string{fmt.Sprintf(`[3]func() "" array at 0 of %d`, funcs)},
		lines(reflect.TypeFor[[3]func()](), "[3]func()"))
}

// TestWalkCovers builds types at random. The parts without parts of their own cover each byte once,
// with arrays repeated.
func TestWalkCovers(t *testing.T) {
	types := []reflect.Type{reflect.TypeFor[bool](), reflect.TypeFor[int16](), reflect.TypeFor[uint64](),
		reflect.TypeFor[complex64](), reflect.TypeFor[string](), reflect.TypeFor[[0]int64](),
		reflect.TypeFor[struct{}]()}
	seed := uint32(42)
	below := func(n int) int {
		seed = seed*747796405 + 2891336453
		return int(seed>>16) % n
	}
	for range 500 {
		if of := types[below(len(types))]; below(3) == 0 && of.Size() < 1<<10 {
			types = append(types, reflect.ArrayOf(below(4), of))
			continue
		}
		var fields []reflect.StructField
		for i := range below(6) {
			of := types[below(len(types))]
			if of.Size() < 1<<10 {
				fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: of})
			}
		}
		types = append(types, reflect.StructOf(fields))
	}
	for _, of := range types {
		covered := make([]int, of.Size())
		cover(of, covered)
		for at, n := range covered {
			assert.Equal(t, 1, n, "byte %d of %v", at, of)
		}
	}
}

func cover(t reflect.Type, bytes []int) {
	plain.Walk(plain.Go(t), func(p plain.Part) (into bool) {
		switch of := p.Go(); p.Kind {
		case reflect.Struct:
			return true
		case reflect.Array:
			for i := range of.Len() {
				cover(of.Elem(), bytes[p.Offset+uintptr(i)*of.Elem().Size():][:of.Elem().Size()])
			}
		default:
			for i := range p.Size {
				bytes[p.Offset+i]++
			}
		}
		return false
	})
}

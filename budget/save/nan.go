package save

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/upfront-mem/upfront/arena_c"
)

// NaN looks for fields of the state that are NaN now. It returns the name of the field at the
// lowest address, such as "Match.Speeds[1]", or "" if there is none. The sign bit of a computed NaN
// depends on the processor, so a state with a NaN may have another hash on another machine. NaN
// reads the fields that [Ring.Diff] can name in the same build, containers up to their capacity,
// and the values passed to [Values]. If such a value has no name, NaN returns the offset from the
// region's first byte, such as "offset 0x340".
//
// NaN fails before [NewRing], while the region is being loaded, after the region was loaded again
// or rewound, and if the region isn't a state region. No goroutine may write the state during the
// call. NaN is slow and makes Go allocations, so call NaN only in tests and to search for a
// difference.
func (st *State) NaN() (field string, err error) {
	switch {
	case st.ring == nil:
		return "", fmt.Errorf("save: NaN of region %s before NewRing", st.saved.Name)
	case !st.saved.IsState:
		return "", st.ring.states("NaN")
	}
	if err := st.saved.Check(); err != nil {
		return "", err
	}
	l := st.ring.describe()
	bytes := st.bytes()
	arena_c.Gather(startOf(bytes), uint64(len(bytes)))
	c := comparison{known: l.byName(), bytes: [2][]byte{bytes, bytes}}
	for i := range st.ring.parts {
		if st.ring.parts[i].State == st {
			c.partLayout = &l.Parts[i]
		}
	}
	first := nanSearch{bytes: bytes, none: map[*typeLayout]bool{}, at: math.MaxUint64}
	c.things(c.known, bytes, func(g *thing) bool {
		first.values(g.of, g.offset, g.count)
		return true
	})
	for i := range st.values {
		v := &st.values[i]
		first.values(new(describer).of(v.of), v.at, v.count)
	}
	for i := range c.Objects {
		if o := &c.Objects[i]; !o.Pool {
			of := c.known[o.Type]
			first.values(of, o.Offset, o.Size/max(of.Size, 1))
		}
	}
	if first.at == math.MaxUint64 {
		return "", nil
	}
	d := c.at(first.at)
	return d.path(), nil
}

// nanSearch finds the first NaN in values of a state.
type nanSearch struct {
	bytes []byte
	none  map[*typeLayout]bool // types without a float
	at    uint64               // of the first NaN so far, or MaxUint64
}

func (s *nanSearch) values(of *typeLayout, at, count uint64) {
	for i := uint64(0); i < count && !s.none[of]; i++ {
		if !s.value(of, at+i*of.Size) {
			s.none[of] = true
		}
	}
}

// value searches a value, and reports whether its type has floats.
func (s *nanSearch) value(of *typeLayout, at uint64) (floats bool) {
	switch of.Kind {
	case "float32", "complex64":
		for i := uint64(0); i < of.Size; i += 4 {
			s.found(at+i, float64(math.Float32frombits(binary.LittleEndian.Uint32(s.bytes[at+i:]))))
		}
		return true
	case "float64", "complex128":
		for i := uint64(0); i < of.Size; i += 8 {
			s.found(at+i, math.Float64frombits(binary.LittleEndian.Uint64(s.bytes[at+i:])))
		}
		return true
	case "array":
		for i := uint64(0); i < of.Count && !s.none[of.of]; i++ {
			floats = s.value(of.of, at+i*of.of.Size)
			if !floats {
				break
			}
		}
	case "struct":
		for _, f := range of.Fields {
			if s.value(f.of, at+f.Offset) {
				floats = true
			}
		}
	}
	return floats
}

func (s *nanSearch) found(at uint64, f float64) {
	if f != f {
		s.at = min(s.at, at)
	}
}

package save

import (
	"fmt"
	"math"
	"reflect"
)

// shapes describes types, each once.
type shapes struct {
	known map[reflect.Type]*shape
	ids   uint64 // of links
	links bool   // one of them has a link
}

// shape is how values of a type lie: the bools and links in them.
type shape struct {
	of          reflect.Type
	size, align uint64
	isBool      bool
	isRoot      bool // or what a link leads to
	is          *link
	parts       []shapePart
}

type shapePart struct {
	at, count uint64
	of        *shape
}

// link is an arena.Ptr or an arena.Slice.
type link struct {
	id   uint16 // and of its further words id+1 and so on
	of   reflect.Type
	to   *shape
	many bool
}

// isPlain says whether any bytes are a good value: it has neither bools nor links. Whoever writes
// such a value writes numbers.
func (s *shape) isPlain() bool { return !s.isBool && s.is == nil && len(s.parts) == 0 }

// shape describes a type. Blank fields are bytes: no code reads them.
func (m *shapes) shape(t reflect.Type) *shape {
	if s := m.known[t]; s != nil {
		return s
	}
	s := &shape{of: t, size: uint64(t.Size()), align: uint64(t.Align())}
	m.known[t] = s
	if to := pointsTo(t); to != nil {
		m.links = true
		s.is = &link{id: uint16(m.ids), of: t, many: s.size != 8}
		if m.ids += s.size / linkWord; m.ids > math.MaxUint16 {
			m.ids -= s.size / linkWord // of so many types the last are taken for one
		}
		s.is.to = m.shape(to)
		s.is.to.isRoot = true
		return s
	}
	switch t.Kind() {
	case reflect.Bool:
		s.isBool = true
	case reflect.Array:
		if of := m.shape(t.Elem()); !of.isPlain() && t.Len() != 0 {
			s.parts = []shapePart{{0, uint64(t.Len()), of}}
		}
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Name == "_" {
				continue
			}
			if of := m.shape(f.Type); !of.isPlain() {
				s.parts = append(s.parts, shapePart{uint64(f.Offset), 1, of})
			}
		}
	}
	return s
}

// path is the name of what lies at a byte of a value of a type: "main.Match.Goals[1]".
func path(t reflect.Type, at uintptr) string {
	name := typeName(t)
	for {
		switch t.Kind() {
		case reflect.Array:
			size := t.Elem().Size()
			name += fmt.Sprintf("[%d]", at/size)
			t, at = t.Elem(), at%size
			continue
		case reflect.Struct:
			i := 0
			for f := t.Field(i); at-f.Offset >= f.Type.Size(); f = t.Field(i) { // it lies in one
				i++
			}
			f := t.Field(i)
			name += "." + f.Name
			t, at = f.Type, at-f.Offset
			continue
		}
		return name
	}
}

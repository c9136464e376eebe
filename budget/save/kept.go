package save

import (
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/scope/stack"
)

func (st *State) addKept(kept []stack.Tenant) {
	for i := range kept {
		k := &kept[i]
		t := tenant{at: k.Offset - st.mark, size: k.Size, name: typeName(k.Name), check: k.Check, convert: k.Convert}
		for _, v := range k.Values {
			if v.Type.Size() != 0 && v.Count != 0 {
				t.values = append(t.values, values{t.at + v.Offset, v.Count, uint64(v.Type.Size()), v.Type, v.What})
			}
		}
		t.live = func(_ []byte, from, to uint64) bool { return t.hasValues(from, to) }
		t.kept = true
		if k.Still != nil {
			st.stills = append(st.stills, k.Still)
		}
		st.tenants = append(st.tenants, t)
	}
}

// hasValues reports whether play may write all of [from, to), as values of one type.
func (t *tenant) hasValues(from, to uint64) bool {
	for _, v := range t.values {
		if first := v.at - t.at; from >= first && to <= first+v.count*v.stride {
			return true
		}
	}
	return false
}

func (st *State) admitsKept() error {
	for i := range st.tenants {
		t := &st.tenants[i]
		for _, v := range t.values {
			if err := st.admits(v.of); err != nil {
				return fmt.Errorf("%w\n\tin a %s", err, t.name)
			}
		}
	}
	return nil
}

// keptLayout is a container in a state. Offsets count from the state's first byte.
type keptLayout struct {
	Name   string         `json:"name"`             // of its type
	Called string         `json:"called,omitempty"` // of State.Name
	Offset uint64         `json:"offset"`
	Size   uint64         `json:"size"`
	Values []valuesLayout `json:"values,omitempty"`
}

// valuesLayout is an array of values of one type, at its capacity.
type valuesLayout struct {
	What   string `json:"what"`
	Type   string `json:"type"`
	Offset uint64 `json:"offset"`
	Count  uint64 `json:"count"`
}

func (d *describer) kept(tenants []tenant) (list []keptLayout) {
	for i := range tenants {
		if t := &tenants[i]; t.kept {
			list = append(list, keptLayout{t.name, t.called, t.at, t.size, d.values(t.values)})
		}
	}
	return list
}

func (d *describer) values(of []values) (list []valuesLayout) {
	for _, v := range of {
		list = append(list, valuesLayout{v.what, d.of(v.of).Name, v.at, v.count})
	}
	return list
}

func roomsOf(tenants []tenant) (list []roomLayout) {
	for i := range tenants {
		if t := &tenants[i]; !t.kept {
			list = append(list, roomLayout{t.name, t.at, t.size})
		}
	}
	return list
}

func (v *valuesLayout) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %d of %s at %#x", v.What, v.Count, v.Type, v.Offset))
}

// isIn reports whether the values are of a known type, and in the size bytes from a byte on.
func (v *valuesLayout) isIn(known map[string]*typeLayout, from, size uint64) bool {
	of, at := known[v.Type], v.Offset-from
	return isPrintable(v.What) && of != nil && of.Size != 0 && v.Offset >= from && at <= size &&
		v.Count <= (size-at)/of.Size
}

func (k *keptLayout) String() string {
	text := strings.TrimSpace(fmt.Sprintf("%s %s, %d bytes at %#x", k.Called, k.Name, k.Size, k.Offset))
	for _, v := range k.Values {
		text += fmt.Sprintf(", %d %s of %s at %#x", v.Count, v.What, v.Type, v.Offset)
	}
	return text
}

func (p *partLayout) checkKept(known map[string]*typeLayout) error {
	for i := range p.Kept {
		k := &p.Kept[i]
		if !isPrintable(k.Name) || !isPrintable(k.Called) || k.Offset > p.Size || k.Size > p.Size-k.Offset {
			return fmt.Errorf("a %q at byte %d of %d", k.Name, k.Offset, p.Size)
		}
		for _, v := range k.Values {
			if !v.isIn(known, k.Offset, k.Size) {
				return fmt.Errorf("%d %q of %q at byte %d, in a %q", v.Count, v.What, v.Type, v.Offset, k.Name)
			}
		}
	}
	return nil
}

// keptAt returns the container at a byte, or nil, and the values there. The values are nil in the
// container's own words.
func (p *partLayout) keptAt(known map[string]*typeLayout, at uint64) (*keptLayout, *thing) {
	for i := range p.Kept {
		k := &p.Kept[i]
		if at < k.Offset || at-k.Offset >= k.Size {
			continue
		}
		for _, v := range k.Values {
			if g := k.thing(known, v); g.has(at) {
				return k, &g
			}
		}
		return k, nil
	}
	return nil, nil
}

func (k *keptLayout) thing(known map[string]*typeLayout, v valuesLayout) thing {
	of := known[v.Type]
	return thing{path: v.What + " of " + k.Name, of: of, offset: v.Offset, count: v.Count, many: true,
		stride: of.Size}
}

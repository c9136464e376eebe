package save

import (
	"fmt"

	"github.com/upfront-mem/upfront/scope"
)

// addKept adds what keeps words of its own in the state, and told the scope so: containers.
func (st *State) addKept(kept []scope.Tenant) {
	for i := range kept {
		k := &kept[i]
		t := tenant{at: k.Offset - st.mark, size: k.Size, name: typeNameIn(k.Name), check: k.Check}
		for _, v := range k.Values {
			if v.Type.Size() != 0 && v.Count != 0 {
				t.values = append(t.values, values{t.at + v.Offset, v.Count, uint64(v.Type.Size()), v.Type})
			}
		}
		t.live = func(_ []byte, from, to uint64) bool { return t.hasValues(from, to) }
		st.tenants = append(st.tenants, t)
	}
}

// hasValues says whether [from, to) of a tenant's bytes lies in values of one type, all of which
// play may write.
func (t *tenant) hasValues(from, to uint64) bool {
	for _, v := range t.values {
		if first := v.at - t.at; from >= first && to <= first+v.count*v.stride {
			return true
		}
	}
	return false
}

// admitsKept looks at the types of tenants' values.
func (st *State) admitsKept() error {
	for i := range st.tenants {
		t := &st.tenants[i]
		for _, v := range t.values {
			if err := st.admits(v.of); err != nil {
				return fmt.Errorf("%w\n\tas a %s has it", err, t.name)
			}
		}
	}
	return nil
}

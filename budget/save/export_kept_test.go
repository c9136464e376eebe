package save

import (
	"encoding/json"
	"slices"
)

// Tenants returns the ranges of the tenants in an image of a ring of one state.
func Tenants(r *Ring) (list [][2]int) {
	p := &r.parts[0]
	for i := range p.tenants {
		from := p.from + int(p.tenants[i].at)
		list = append(list, [2]int{from, from + int(p.tenants[i].size)})
	}
	return list
}

// TenantNames returns the names of the tenants in a ring of one state.
func TenantNames(r *Ring) (names []string) {
	for _, t := range r.parts[0].tenants {
		names = append(names, t.name)
	}
	return names
}

// WithKept returns a file of a ring of one state with a changed description of its containers.
func WithKept(file []byte, r *Ring, change func(k *keptLayout)) []byte {
	l := *r.describe()
	l.Parts = slices.Clone(l.Parts)
	l.Parts[0].Kept = slices.Clone(l.Parts[0].Kept)
	k := &l.Parts[0].Kept[0]
	k.Values = slices.Clone(k.Values)
	change(k)
	text, _ := json.Marshal(l)
	image := file[len(file)-r.Size():]
	head := fileHead{uint64(len(text)), uint64(len(image)), 1, l.fingerprint(), sumOf(text),
		sumOf(image)}
	return slices.Concat(head.append(nil), text, image)
}

// KeptLayout is the description of a container in a file.
type KeptLayout = keptLayout

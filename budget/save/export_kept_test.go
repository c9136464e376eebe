package save

import (
	"encoding/json"
	"slices"
)

// Tenants are where an image of a ring of one state has what keeps words of its own: from, to.
func Tenants(r *Ring) (list [][2]int) {
	p := &r.parts[0]
	for i := range p.tenants {
		from := p.from + int(p.tenants[i].at)
		list = append(list, [2]int{from, from + int(p.tenants[i].size)})
	}
	return list
}

// TenantNames are theirs.
func TenantNames(r *Ring) (names []string) {
	for _, t := range r.parts[0].tenants {
		names = append(names, t.name)
	}
	return names
}

// WithKept is a file of a ring of one state with another description of its containers.
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

// KeptLayout is how a file describes a container.
type KeptLayout = keptLayout

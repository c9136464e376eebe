package save

import (
	"encoding/json"
	"reflect"
	"slices"
)

// What tests of the package from outside see of it.
var (
	AppendChanges = appendChanges
	ApplyChanges  = applyChanges
	ReadFile      = readFile
)

// Object is what a load asked for at once.
type Object = object

// DeltaHeader is the size of a delta's header.
const DeltaHeader = deltaHeader

// Sealed is a delta with a header that fits: whatever is behind it, and whatever snapshot that
// makes.
func Sealed(r *Ring, base, number uint64, changes []byte) []byte {
	image := make([]byte, r.Size())
	head := deltaHead{magic: deltaMagic, size: uint64(len(image)), base: base, number: number}
	head.changes = uint64(len(changes))
	if s, err := r.state("Sealed", base); err == nil {
		copy(image, s.image)
		head.baseHash = s.sum()
	}
	applyChanges(image, changes)
	head.hash = hashOf(image)
	delta := append(make([]byte, deltaHeader), changes...)
	head.put(delta, r.of)
	return delta
}

// Image is a copy of a snapshot's.
func Image(r *Ring, number uint64) []byte {
	s, err := r.state("Image", number)
	if err != nil {
		panic(err)
	}
	return append([]byte(nil), s.image...)
}

// Live is the image of what there is now.
func Live(r *Ring) []byte {
	image := make([]byte, r.Size())
	for i := range r.parts {
		p := r.parts[i]
		p.tracking = nil
		p.take(image, 0)
		for _, node := range p.nodes { // as in a snapshot that somebody looked at
			clear(image[p.from+int(node.At-p.mark):][:node.Size])
		}
	}
	return image
}

// Hold has the ring hold an image as a snapshot, if it passes check.
func Hold(r *Ring, number uint64, image []byte) error {
	copy(r.spare, image)
	if err := r.admit(number); err != nil {
		return err
	}
	r.hold(number)
	return nil
}

// Control is where an image of a ring of one state has what is the program's own, in bytes of the
// image.
type Control struct {
	Words, Nodes []int
	Pools        []ControlPool
	From, To     int // the state
}

// ControlPool is where a pool's lie.
type ControlPool struct{ States, Numbers, Generations, Chunks, Count, Stride int }

// ControlOf is a ring's.
func ControlOf(r *Ring) (c Control) {
	p := &r.parts[0]
	c.From, c.To = p.from, p.to
	for i := range p.pools {
		pool := &p.pools[i]
		h := pool.header
		first, numbers := p.from+int(pool.first), p.from+int(pool.first+h.Numbers-h.Chunks)
		own := ControlPool{first - int(h.Count), numbers, 0, first, int(h.Count), int(h.Stride)}
		if h.Handles != 0 {
			own.Generations = numbers + 4*own.Count
		}
		c.Pools, c.Words = append(c.Pools, own), append(c.Words, p.words+poolWords*i)
	}
	for _, n := range p.nodes {
		c.Nodes = append(c.Nodes, p.from+int(n.At-p.mark))
	}
	return c
}

// SumOf is for files with other bytes.
var SumOf = sumOf

// DiffImages is Diff of what may be no snapshots.
func DiffImages(r *Ring, a, b []byte) (Difference, bool) { return r.describe().diff(a, b) }

// WithObjects is a file of a ring of one state, as if a checked build had written it.
func WithObjects(file []byte, r *Ring, objects ...Object) []byte {
	l := *r.describe()
	l.Parts = slices.Clone(l.Parts)
	l.Parts[0].Objects = objects
	for _, o := range objects {
		if known := l.byName(); known[o.Type] == nil {
			panic(o.Type)
		}
	}
	text, _ := json.Marshal(l)
	image := file[len(file)-r.Size():]
	head := fileHead{uint64(len(text)), uint64(len(image)), 1, l.fingerprint(), sumOf(text),
		sumOf(image)}
	return slices.Concat(head.append(nil), text, image)
}

// FingerprintOf is that of a description, or 0.
func FingerprintOf(text string) uint64 {
	l := new(layout)
	if json.Unmarshal([]byte(text), l) != nil {
		return 0
	}
	return l.fingerprint()
}

// Tenant is something in a state that keeps words of its own, for tests of what links may do there.
type Tenant struct {
	At, Size uint64 // from the state's first byte
	Live     func(image []byte, from, to uint64) bool
	Values   []TenantValues
}

// TenantValues are values of one type.
type TenantValues struct {
	At, Count, Stride uint64
	Of                reflect.Type
}

// AddTenant adds one. pre: nothing came from outside yet.
func (st *State) AddTenant(t Tenant) {
	of := tenant{at: t.At, size: t.Size, name: "a tenant", live: t.Live,
		check: func([]byte) error { return nil }}
	for _, v := range t.Values {
		of.values = append(of.values, values{at: v.At, count: v.Count, stride: v.Stride, of: v.Of})
	}
	st.tenants = append(st.tenants, of)
}

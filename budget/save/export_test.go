package save

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Exports for the tests of package save_test.
var (
	ReadFile = readFile
)

// AppendChanges appends the changes between two flat images.
func AppendChanges(dst, from, to []byte) []byte {
	dst, _ = appendDifferences(dst, from, to, 0, 0)
	return dst
}

// ApplyChanges makes changes in a flat image.
func ApplyChanges(image, changes []byte) (at int, what string) {
	return applyChanges(image, changes, xorRange)
}

// Object is one allocation of a load.
type Object = object

// DeltaHeader is the size of a delta's header.
const DeltaHeader = deltaHeader

// Sealed returns a delta with a correct header, for any changes, with the hash of the snapshot that
// they make.
func Sealed(r *Ring, base, number uint64, changes []byte) []byte {
	head := deltaHead{magic: deltaMagic, size: uint64(r.flatSize), base: base, number: number}
	head.changes = uint64(len(changes))
	flat := make([]byte, r.flatSize)
	if s, err := r.state("Sealed", base); err == nil {
		r.flatten(flat, s.bytes())
		head.baseHash = s.sum()
	}
	ApplyChanges(flat, changes)
	image := make([]byte, r.Size())
	if r.isFlat() {
		head.hash = hashOf(flat)
	} else if used, err := r.repack(image, flat); err == nil {
		head.hash = hashOf(image[:used])
	}
	delta := append(make([]byte, deltaHeader), changes...)
	head.put(delta, r.of)
	return delta
}

// Image returns a copy of a snapshot's image.
func Image(r *Ring, number uint64) []byte {
	s, err := r.state("Image", number)
	if err != nil {
		panic(err)
	}
	return bytes.Clone(s.bytes())
}

// Flat returns a snapshot's flat image, with zeros in the free bytes of packed heaps.
func Flat(r *Ring, number uint64) []byte {
	s, err := r.state("Flat", number)
	if err != nil {
		panic(err)
	}
	return bytes.Clone(r.flatOf(s))
}

// OffsetOf returns the offset of p in the state.
func (st *State) OffsetOf(p unsafe.Pointer) int {
	return int(arena_c.Place(p, unsafe.Pointer(st.header())) - st.mark)
}

// Fixed returns the bytes of an image outside of packed heaps.
func Fixed(r *Ring) int { return r.fixed }

// SpareIsClean reports whether the spare flat image has zeros in heaps, if the ring says so.
func SpareIsClean(r *Ring) bool {
	for _, p := range r.pieces {
		if p.heap && r.isZero && bytes.ContainsFunc(r.flat[p.flat:][:p.size], func(b rune) bool { return b != 0 }) {
			return false
		}
	}
	return true
}

// Live returns the image of the current state.
func Live(r *Ring) []byte {
	image := make([]byte, r.Size())
	for i := range r.parts {
		p := r.parts[i]
		p.tracking = nil
		p.take(image, 0)
		for _, node := range p.nodes { // as in a cleaned snapshot
			clear(image[p.from+int(node.At-p.mark):][:node.Size])
		}
	}
	return image
}

// Hold makes a flat image a snapshot of the ring, if it passes check.
func Hold(r *Ring, number uint64, image []byte) error {
	to := r.empty(number)
	defer r.refused(to)
	flat := r.zeroFlat(to)
	copy(flat, image)
	if err := r.admit(flat, number); err != nil {
		return err
	}
	used, err := r.repack(to.image, flat)
	if err == nil {
		r.holdOutside(to, number, used)
	}
	return err
}

// Control is the positions of the program's own words, in an image of a ring of one state.
type Control struct {
	Words, Nodes []int
	Pools        []ControlPool
	From, To     int // the state
}

// ControlPool is the positions of a pool's words.
type ControlPool struct{ States, Numbers, Generations, Chunks, Count, Stride int }

// ControlOf returns the Control of a ring.
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

// SumOf computes checksums for changed files.
var SumOf = sumOf

// DiffImages is Diff for arbitrary images.
func DiffImages(r *Ring, a, b []byte) (Difference, bool) { return r.describe().diff(a, b) }

// WithObjects returns a file of a ring of one state, as a checked build would write it.
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

// FingerprintOf returns the fingerprint of a description, or 0.
func FingerprintOf(text string) uint64 {
	l := new(layout)
	if json.Unmarshal([]byte(text), l) != nil {
		return 0
	}
	return l.fingerprint()
}

// Tenant is a tenant for tests of links into it.
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

// AddTenant adds a tenant. pre: no snapshot from outside was checked.
func (st *State) AddTenant(t Tenant) {
	of := tenant{at: t.At, size: t.Size, name: "a tenant", live: t.Live,
		check: func([]byte) error { return nil }}
	for _, v := range t.Values {
		of.values = append(of.values, values{at: v.At, count: v.Count, stride: v.Stride, of: v.Of})
	}
	st.tenants = append(st.tenants, of)
}

// CheckpointImage returns the newest image of a checkpoint.
func CheckpointImage(p *Checkpoint) []byte {
	list, half := p.of.sequences(p.slot), 0
	if list[1] > list[0] {
		half = 1
	}
	_, _, image := p.of.parts(p.slot, half, p.of.entry(p.slot, half))
	return image
}

// CheckpointNeed returns the least Size for a checkpoint.
func CheckpointNeed(p *Checkpoint) uint64 {
	return lines(uint64(len(p.ring.text))) + lines(uint64(p.ring.most))
}

// The head and an entry of a file of checkpoints, in bytes.
const (
	CheckpointHead  = checkpointHeads
	CheckpointEntry = checkpointEnts
	CheckpointPage  = checkpointPage
)

package save

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// convertible reports whether the ring converts files of older types.
func (r *Ring) convertible() bool {
	return !slices.ContainsFunc(r.parts, func(p part) bool { return p.version == 0 })
}

// fits compares a file's description with this program, and reads it. It returns nil if the
// snapshot fits, or the plan of its conversion.
func (r *Ring) fits(f *source, head fileHead) (*plan, error) {
	here := r.describe()
	if head.fingerprint == here.fingerprint() && r.sizeFits(head) {
		return nil, f.text(head, io.Discard)
	}
	if !r.convertible() {
		what, err := r.differs(f, head)
		if err != nil {
			return nil, err
		}
		return nil, f.bad(fileHeader, "it is of another program, plan or data: %s", what)
	}
	if head.layoutSize > differsMost {
		return nil, f.bad(8, "its types differ, and its description has %d bytes: at most %d are converted",
			head.layoutSize, differsMost)
	}
	l, err := f.layout(head)
	if err != nil {
		return nil, err
	}
	if of := l.fingerprint(); of != head.fingerprint {
		return nil, f.bad(32, "fingerprint %#x here, and %#x by the description", head.fingerprint, of)
	}
	p, err := planOf(l, here, func(part int) []Change { return r.parts[part].changes })
	if err != nil {
		return nil, f.bad(fileHeader, "it is of another program, plan or data: %w", err)
	}
	if l.bare() == here.bare() && p.isSame() && r.sizeFits(head) {
		return nil, nil
	}
	if text := p.refused(); text != "" {
		return nil, f.bad(fileHeader, "its types differ, and don't convert: %s", text)
	}
	if r.loaded == nil {
		return nil, f.bad(fileHeader, "its types differ, and a state with a State.Heap isn't converted")
	}
	return p, nil
}

func (r *Ring) sizeFits(head fileHead) bool {
	return head.imageSize >= uint64(r.fixed) && (!r.isFlat() || head.imageSize == uint64(r.Size()))
}

// bare returns the fingerprint without names, versions and enumerators.
func (l *layout) bare() uint64 {
	same := layout{Plan: l.Plan, Parts: slices.Clone(l.Parts)}
	for i := range same.Parts {
		p := &same.Parts[i]
		p.Version, p.Values, p.Rooms = 0, nil, nil
		p.Pools, p.Kept = slices.Clone(p.Pools), slices.Clone(p.Kept)
		for k := range p.Pools {
			p.Pools[k].Name, p.Pools[k].Mask = "", 0
		}
		for k := range p.Kept {
			p.Kept[k].Called = ""
		}
	}
	for _, t := range l.Types {
		bare := *t
		bare.Enum = nil
		same.Types = append(same.Types, &bare)
	}
	return same.fingerprint()
}

// isSame reports whether all bytes stay as they are. pre: the layouts have the same bare
// fingerprints.
func (p *plan) isSame() bool {
	for _, c := range p.parts {
		for i, q := range c.pools {
			if q.file != q.here || q.file != i {
				return false
			}
		}
		if len(c.pools) != len(c.file.Pools) || len(c.kept) != len(c.file.Kept) {
			return false
		}
		for i, k := range c.kept {
			if k.file != k.here || k.file != i {
				return false
			}
		}
		for _, q := range c.pairs {
			if len(q.calls) != 0 || q.numbers != nil {
				return false
			}
		}
	}
	// Heaps and allocators are refused in a conversion, but here they aren't touched.
	return !slices.ContainsFunc(p.rows, func(r Conversion) bool {
		return r.Refused && !strings.HasSuffix(r.Action, notConverted)
	})
}

// notConverted ends the action of a row for an allocator.
const notConverted = "aren't converted"

// convertMost returns the maximum size of a snapshot that is converted into one of size bytes. A
// state seldom shrinks, and a file from outside may not take more Go heap.
func convertMost(size uint64) uint64 { return 4*size + 1<<20 }

// convert reads the snapshot of a file, and makes a snapshot of this program's types. It works in
// spare memory.
func (r *Ring) convert(f *source, head fileHead, p *plan) (number uint64, err error) {
	if most := convertMost(uint64(r.flatSize)); head.imageSize > most {
		return 0, f.bad(16, "a snapshot of %d bytes: at most %d are converted into one of %d", head.imageSize, most,
			r.flatSize)
	}
	old := make([]byte, head.imageSize)
	if err := f.full(old, "the snapshot"); err != nil {
		return 0, err
	}
	at := f.at - len(old)
	if sum := sumOf(old); sum != head.imageSum {
		return 0, f.bad(at, "the snapshot is damaged: its checksum is %#x, and the header says %#x", sum,
			head.imageSum)
	}
	to := r.empty(head.number)
	defer r.refused(to)
	copy(to.image, r.loaded)
	if err := p.convert(old, to.image, r.loaded, func(part int) []tenant { return r.parts[part].tenants }); err != nil {
		return 0, f.bad(at, "the snapshot doesn't convert: %w", &conversionError{err})
	}
	if err := r.admit(to.image, head.number); err != nil {
		return 0, f.bad(at, "the converted snapshot is a state that this program can't produce: %w",
			&conversionError{err})
	}
	r.holdOutside(to, head.number, len(to.image))
	return head.number, nil
}

// conversionError is the refusal of a whole snapshot, which an older program reads.
type conversionError struct{ error }

func (e *conversionError) Unwrap() error { return e.error }

// convert converts the flat image of a file into image, which is as the load made it. tenants
// returns the containers of a part; if it is nil, functions and containers stay as they are.
func (p *plan) convert(old, image, loaded []byte, tenants func(part int) []tenant) error {
	begins := [2]uint64{}
	for i, c := range p.parts {
		oldFrom, oldTo, oldNext := c.file.span(begins[0])
		from, to, next := c.here.span(begins[1])
		k := converter{plan: c, old: old[oldFrom:oldTo], oldWords: old[begins[0]:oldFrom], now: image[from:to],
			words: image[begins[1]:from], loaded: loaded[from:to]}
		if tenants != nil {
			for _, t := range tenants(i) {
				if t.kept {
					k.tenants = append(k.tenants, t)
				}
			}
			k.isRing = true
		}
		if err := k.all(); err != nil {
			return fmt.Errorf("region %s: %w", c.here.Region, err)
		}
		begins = [2]uint64{oldNext, next}
	}
	return nil
}

// converter converts the state of a part. It trusts no byte of the file's state.
//
// All places of the file's state that hold values are known: the root, pools, containers and
// Values, by the description. The rest is found by links: say the root here has a link Lamps, and
// the load made it lead to 6 lamps at 0x80. If the file's root has a link Lamps to 4 lamps at 0x40,
// then these become the first 4 lamps at 0x80. From then on each link to one of them is moved. A
// link to other bytes is refused. At the end all bytes that no place holds must be zeros, so
// nothing is lost in silence.
type converter struct {
	plan               *partPlan
	old, oldWords      []byte
	now, words, loaded []byte
	tenants            []tenant // of containers here, in order
	isRing             bool     // functions are called, and containers converted
	places             []*converted
	queue              []*converted // places that links led to
	taken              []span       // bytes here that have values of the file; sorted
	owners             []owner
}

// converted is an array of values in the file, and its place here.
type converted struct {
	pair                *pair
	name                string
	many                bool
	from, count, stride uint64
	to, room, step      uint64 // room is the count here
	place               func(uint64) (to uint64, ok bool)
	skip                bool // its values aren't converted
}

// owner is a pool whose handles may be in the state.
type owner struct {
	mask, own       uint32 // in the file
	nowMask, nowOwn uint32
	count           uint64
	lost            bool
}

var errOverlap = errors.New("its values overlap others")

func (c *converter) all() error {
	root := &converted{pair: c.plan.root, name: shortName(c.plan.here.Root), count: 1,
		stride: c.plan.root.old.Size, room: 1, step: c.plan.root.now.Size}
	list := []*converted{root}
	add := func(a *converted) error {
		list = append(list, a)
		return c.add(a)
	}
	if err := c.add(root); err != nil {
		return fmt.Errorf("%s: %w", root.name, err)
	}
	for _, p := range c.plan.pools {
		a, err := c.pool(p)
		if err == nil {
			err = add(a)
		}
		if err != nil {
			return fmt.Errorf("the pool of %s: %w", c.plan.file.Pools[p.file].Type, err)
		}
	}
	for _, i := range c.plan.lost {
		if _, err := c.owner(&c.plan.file.Pools[i], i, nil); err != nil {
			return fmt.Errorf("the pool of %s: %w", c.plan.file.Pools[i].Type, err)
		}
	}
	var done []func() error
	for _, p := range c.plan.kept {
		k := &c.plan.file.Kept[p.file]
		arrays, finish, err := c.container(p)
		for i := 0; i < len(arrays) && err == nil; i++ {
			err = add(arrays[i])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
		if finish != nil {
			done = append(done, func() error {
				if err := finish(); err != nil {
					return fmt.Errorf("%s: %w", k.Name, err)
				}
				return nil
			})
		}
	}
	for _, v := range c.plan.values {
		a := &converted{pair: v.pair, name: "values of " + v.file.Type, many: true, from: v.file.Offset,
			count: v.file.Count, stride: v.pair.old.Size, to: v.here.Offset, room: v.here.Count, step: v.pair.now.Size}
		if err := add(a); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	for _, a := range list {
		for c.queue = append(c.queue, a); len(c.queue) != 0; {
			next := c.queue[0]
			c.queue = c.queue[1:]
			if err := c.array(next); err != nil {
				return err
			}
		}
	}
	for _, finish := range done {
		if err := finish(); err != nil {
			return err
		}
	}
	return c.nothingLost()
}

// add registers a place for links, and its bytes on both sides.
func (c *converter) add(a *converted) error {
	if a.stride == 0 || a.step == 0 {
		return errors.New("its values have no bytes")
	}
	if a.count > a.room && a.place == nil || a.from > uint64(len(c.old)) ||
		a.count > (uint64(len(c.old))-a.from)/a.stride {
		return fmt.Errorf("%d values at byte %#x of %d, for %d here", a.count, a.from, len(c.old), a.room)
	}
	if a.count == 0 {
		return nil
	}
	i, found := c.search(a.from)
	if found || i > 0 && c.places[i-1].end() > a.from || i < len(c.places) && a.end() > c.places[i].from {
		return errOverlap
	}
	c.places = slices.Insert(c.places, i, a)
	return c.take(span{a.to, a.to + a.room*a.step})
}

// search returns the index of the place that begins at a byte, or of the next place.
func (c *converter) search(at uint64) (i int, found bool) {
	return slices.BinarySearchFunc(c.places, at, func(p *converted, at uint64) int { return cmp.Compare(p.from, at) })
}

func (a *converted) end() uint64 { return a.from + a.count*a.stride }

func (c *converter) take(s span) error {
	i, found := slices.BinarySearchFunc(c.taken, s.from, func(t span, at uint64) int {
		return cmp.Compare(t.from, at)
	})
	if found || i > 0 && c.taken[i-1].to > s.from || i < len(c.taken) && s.to > c.taken[i].from {
		return errors.New("two arrays of the file would be one here")
	}
	c.taken = slices.Insert(c.taken, i, s)
	return nil
}

func (c *converter) find(at uint64) *converted {
	i, found := c.search(at)
	if !found {
		i--
	}
	if i < 0 || c.places[i].end() <= at {
		return nil
	}
	return c.places[i]
}

func (c *converter) array(a *converted) error {
	for i := range a.count {
		if a.skip {
			break
		}
		k, live := i, true
		if a.place != nil {
			k, live = a.place(i)
		}
		if !live {
			continue
		}
		if err := c.value(a.pair, a.from+i*a.stride, a.to+k*a.step); err != nil {
			name := a.name
			if a.many {
				name = fmt.Sprintf("%s[%d]", name, i)
			}
			var in *inField
			if errors.As(err, &in) {
				return fmt.Errorf("%s%s: %w", name, in.path, in.err)
			}
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// inField is an error in a field of a value.
type inField struct {
	path string
	err  error
}

func (e *inField) Error() string { return e.path + ": " + e.err.Error() }

// in adds a step to the path of an error.
func in(step string, err error) error {
	if e, ok := err.(*inField); ok {
		e.path = step + e.path
		return e
	}
	return &inField{step, err}
}

func (c *converter) value(p *pair, from, to uint64) error {
	switch p.action {
	case pairSkip:
	case pairCopy:
		b := c.old[from:][:p.old.Size]
		if p.old.isBool && b[0] > 1 {
			return fmt.Errorf("the bool %d: a bool is 0 or 1", b[0])
		}
		copy(c.now[to:][:p.now.Size], b)
		clear(c.now[to+p.old.Size : to+p.now.Size])
	case pairNumber:
		return c.number(p, from, to)
	case pairHandle:
		return c.handle(from, to)
	case pairLink:
		return c.link(p, from, to)
	case pairArray:
		if of := p.of; of.action == pairCopy && !of.old.isBool && of.calls == nil && of.old.Size == of.now.Size {
			copy(c.now[to:], c.old[from:][:p.old.Count*of.old.Size])
			break
		}
		for i := uint64(0); i < p.old.Count && p.of.old.Size != 0; i++ {
			if err := c.value(p.of, from+i*p.of.old.Size, to+i*p.of.now.Size); err != nil {
				return in(fmt.Sprintf("[%d]", i), err)
			}
		}
	case pairStruct:
		for i := range p.fields {
			f := &p.fields[i]
			if err := c.value(f.pair, from+f.old, to+f.to); err != nil {
				return in("."+f.name, err)
			}
		}
	}
	for i := range p.calls {
		if err := c.call(&p.calls[i], p, from, to); err != nil {
			return err
		}
	}
	return nil
}

func (c *converter) call(call *callPair, p *pair, from, to uint64) error {
	for _, f := range call.copies {
		if at := badBool(f.pair.now, c.old[from+f.old:]); at >= 0 {
			return in("."+f.name, fmt.Errorf("a bool that is neither 0 nor 1, at byte %d", at))
		}
	}
	if call.call == nil || !c.isRing {
		return nil
	}
	call.call(func(buffer []byte) {
		for _, f := range call.copies {
			copy(buffer[f.to:], c.old[from+f.old:][:f.pair.old.Size])
		}
	}, unsafe.Pointer(&c.now[to : to+p.now.Size][0]))
	return nil
}

// badBool returns the first byte that is a bool and neither 0 nor 1, or -1.
func badBool(t *typeLayout, b []byte) int {
	if t.isBool && b[0] > 1 {
		return 0
	}
	for _, p := range t.parts {
		for i := range p.count {
			at := p.at + i*p.of.Size
			if bad := badBool(p.of, b[at:]); bad >= 0 {
				return int(at) + bad
			}
		}
	}
	return -1
}

func (c *converter) number(p *pair, from, to uint64) error {
	b, out := c.old[from:], c.now[to:][:p.now.Size]
	if !isInteger(p.old.Kind) { // a float or a complex number of half the size
		for i := uint64(0); i < p.old.Size; i += 4 {
			f := math.Float32frombits(binary.LittleEndian.Uint32(b[i:]))
			binary.LittleEndian.PutUint64(out[2*i:], math.Float64bits(float64(f)))
		}
		return nil
	}
	n := p.old.integer(b)
	if p.numbers != nil {
		now, ok := p.numbers[n]
		if !ok {
			return fmt.Errorf("%d is no enumerator of %s that is here", n, p.old.Name)
		}
		n = now
	}
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], uint64(n))
	copy(out, word[:])
	return nil
}

// pool converts the words of a pool, and returns its chunks.
func (c *converter) pool(p poolPair) (*converted, error) {
	file, here := &c.plan.file.Pools[p.file], &c.plan.here.Pools[p.here]
	own, err := c.owner(file, p.file, here)
	if err != nil {
		return nil, err
	}
	oldWords, words := c.oldWords[poolWords*p.file:], c.words[poolWords*p.here:]
	states, more := c.old[file.Offset-file.Count:file.Offset], uint32(here.Count-file.Count)
	copy(c.now[here.Offset-file.Count:here.Offset], states)
	for i := range c.now[here.Offset-here.Count : here.Offset-file.Count] {
		c.now[here.Offset-here.Count+uint64(i)] = arena_c.ChunkFresh
	}
	fresh := uint32(bytes.Count(states, []byte{arena_c.ChunkFresh}))
	numbers, from := c.now[here.Numbers:][:4*here.Count], c.old[file.Numbers:]
	clear(numbers)
	for place := range fresh + more {
		binary.LittleEndian.PutUint32(numbers[4*place:], uint32(here.Count)-1-place)
	}
	// Above the numbers of free chunks are old ones, which no code reads.
	copy(numbers[4*(fresh+more):], from[4*fresh:4*file.Count])
	binary.LittleEndian.PutUint32(words, binary.LittleEndian.Uint32(oldWords)+more)
	copy(words[4:8], oldWords[4:8])
	for i := uint64(0); i < here.Count && here.Handles; i++ {
		g := own.nowOwn | 1
		if i < file.Count {
			if g, err = own.generation(binary.LittleEndian.Uint32(from[4*(file.Count+i):])); err != nil {
				return nil, fmt.Errorf("chunk %d: %w", i, err)
			}
		}
		binary.LittleEndian.PutUint32(c.now[here.Numbers+4*(here.Count+i):], g)
	}
	clear(c.now[here.Offset:][:here.Count*here.Stride])
	c.plan.covered = append(c.plan.covered, span{file.Numbers, file.Offset + file.Count*file.Stride})
	return &converted{pair: p.pair, name: "pool of " + file.Type, many: true, from: file.Offset, count: file.Count,
		stride: file.Stride, to: here.Offset, room: here.Count, step: here.Stride,
		place: func(i uint64) (uint64, bool) { return i, states[file.Count-1-i] == arena_c.ChunkLive }}, nil
}

// owner checks the words of a pool of the file, and registers its handles. here is nil for a pool
// that is dropped.
func (c *converter) owner(file *poolLayout, index int, here *poolLayout) (own owner, err error) {
	own.count, own.lost = file.Count, here == nil
	words, numbers := c.oldWords[poolWords*index:], c.old[file.Numbers:file.Offset]
	if here != nil && here.Handles {
		own.nowMask = here.Mask
		own.nowOwn = binary.LittleEndian.Uint32(c.loaded[here.Numbers+4*here.Count:]) &^ own.nowMask
	}
	if file.Handles && file.Count != 0 {
		own.mask = file.Mask
		for _, p := range c.plan.here.Pools { // files of the first form have no mask
			own.mask = cmp.Or(own.mask, p.Mask)
		}
		if own.mask == 0 && own.lost {
			own.mask = math.MaxUint32 // any
		}
		if own.mask&(own.mask+1) != 0 || own.mask == 0 {
			return own, fmt.Errorf("generations of the mask %#x", own.mask)
		}
		own.own = binary.LittleEndian.Uint32(numbers[4*file.Count:]) &^ own.mask
	}
	chunks := poolChunks{states: c.old[file.Offset-file.Count : file.Offset], numbers: numbers,
		free: binary.LittleEndian.Uint32(words), retired: binary.LittleEndian.Uint32(words[4:]), handles: own.mask,
		own: own.own}
	if at, err := chunks.check(file.Offset, file.Numbers); err != nil {
		return own, fmt.Errorf("byte %#x of the state: %w", at, err)
	}
	if own.mask != 0 {
		if slices.ContainsFunc(c.owners, func(o owner) bool { return o.mask != own.mask || o.own == own.own }) {
			return own, errors.New("its handles may be those of another pool")
		}
		c.owners = append(c.owners, own)
	}
	return own, nil
}

func (o *owner) generation(g uint32) (now uint32, err error) {
	if puts := g & o.mask; puts > o.nowMask {
		return 0, fmt.Errorf("a chunk was put %d times, and here at most %d are counted: plan fewer pools", puts,
			o.nowMask)
	}
	return o.nowOwn | g&o.mask, nil
}

func (c *converter) handle(from, to uint64) error {
	word := binary.LittleEndian.Uint64(c.old[from:])
	for i := range c.owners {
		o := &c.owners[i]
		if word == 0 || uint32(word>>32)&^o.mask != o.own {
			continue
		}
		if word&arena_c.HandleIndex >= o.count {
			break
		}
		if o.lost {
			word = 0
		} else {
			g, err := o.generation(uint32(word >> 32))
			if err != nil {
				return err
			}
			word = uint64(g)<<32 | word&arena_c.HandleIndex
		}
		binary.LittleEndian.PutUint64(c.now[to:], word)
		return nil
	}
	if word != 0 {
		return fmt.Errorf("the handle %#x, which is of no pool of the state", word)
	}
	binary.LittleEndian.PutUint64(c.now[to:], 0)
	return nil
}

// link converts an arena.Ptr, Slice or String.
func (c *converter) link(p *pair, from, to uint64) error {
	words := func(b []byte, mark uint64) (stored, at, count uint64) {
		if stored, count = binary.LittleEndian.Uint64(b), 1; p.old.Kind != kindPtr {
			count = binary.LittleEndian.Uint64(b[8:])
		}
		return stored, stored - 1 - mark, count
	}
	put := func(stored, count uint64) {
		if binary.LittleEndian.PutUint64(c.now[to:], stored); p.old.Kind != kindPtr {
			binary.LittleEndian.PutUint64(c.now[to+8:], count)
		}
	}
	stored, at, count := words(c.old[from:], c.plan.file.Mark)
	size := p.of.old.Size
	switch {
	case stored == 0 || count == 0:
		put(0, 0)
		return nil
	case stored <= c.plan.file.Mark:
		if c.plan.file.Mark == c.plan.here.Mark {
			put(stored, count) // the check of links knows the values of Readable
			return nil
		}
		return fmt.Errorf("it leads to offset %#x, before the state", stored-1)
	case size == 0:
		return fmt.Errorf("it leads to %d values of %s, which has no bytes", count, p.of.old.Name)
	case at >= uint64(len(c.old)) || count > (uint64(len(c.old))-at)/size:
		return fmt.Errorf("it leads to %d values of %s at offset %#x, which aren't in the state", count, p.of.old.Name,
			stored-1)
	}
	// as the load made it
	loadedStored, loadedAt, loadedCount := words(c.loaded[to:], c.plan.here.Mark)
	loadedIs := loadedStored > c.plan.here.Mark && loadedAt < uint64(len(c.now)) && p.of.now.Size != 0 &&
		loadedCount <= (uint64(len(c.now))-loadedAt)/p.of.now.Size
	a := c.find(at)
	if a == nil && loadedIs {
		if count > loadedCount {
			return fmt.Errorf("it leads to %d values of %s, and the load here makes %d", count, p.of.old.Name,
				loadedCount)
		}
		a = &converted{pair: p.of, name: "values of " + p.of.old.Name, many: true, from: at, count: count,
			stride: size, to: loadedAt, room: loadedCount, step: p.of.now.Size}
		if err := c.add(a); err != nil {
			return fmt.Errorf("it leads to %d values of %s at offset %#x: %w", count, p.of.old.Name, stored-1, err)
		}
		c.queue = append(c.queue, a)
	}
	if a == nil {
		return fmt.Errorf("it leads to %d values of %s at offset %#x, and the load here makes none for it", count,
			p.of.old.Name, stored-1)
	}
	first, ok := c.moved(a, at, p.of)
	last, okLast := c.moved(a, at+(count-1)*size, p.of)
	if !ok || !okLast || last-first != (count-1)*p.of.now.Size {
		return fmt.Errorf("it leads to %d values of %s at offset %#x, which don't stay together here", count,
			p.of.old.Name, stored-1)
	}
	if whole := a.pair == p.of && at == a.from && count == a.count; whole && p.old.Kind == kindSlice && loadedIs &&
		loadedAt == a.to && loadedCount == a.room {
		count = loadedCount // the rest is as the load made it
	}
	put(c.plan.here.Mark+first+1, count)
	return nil
}

// moved returns the place here of a value of the file.
func (c *converter) moved(a *converted, at uint64, want *pair) (to uint64, ok bool) {
	if at >= a.end() {
		return 0, false
	}
	i, off := (at-a.from)/a.stride, (at-a.from)%a.stride
	if a.place != nil {
		k, live := a.place(i)
		if !live {
			return 0, false
		}
		i = k
	}
	to, p := a.to+i*a.step, a.pair
	for p != want || off != 0 {
		switch p.action {
		case pairArray:
			of := p.of
			if of.old.Size == 0 || off/of.old.Size >= p.old.Count {
				return 0, false
			}
			to, off, p = to+off/of.old.Size*of.now.Size, off%of.old.Size, of
		case pairStruct:
			k := slices.IndexFunc(p.fields, func(f fieldPair) bool {
				return off >= f.old && off-f.old < f.pair.old.Size
			})
			if k < 0 {
				return 0, false
			}
			f := &p.fields[k]
			to, off, p = to+f.to, off-f.old, f.pair
		default:
			return 0, false
		}
	}
	return to, true
}

// container converts the words of a container, and returns its arrays of values. finish comes after
// the values.
func (c *converter) container(p keptPair) (arrays []*converted, finish func() error, err error) {
	file, here := &c.plan.file.Kept[p.file], &c.plan.here.Kept[p.here]
	c.plan.covered = append(c.plan.covered, span{file.Offset, file.Offset + file.Size})
	var place func(uint64) (uint64, bool)
	if c.isRing {
		t := &c.tenants[p.here]
		last := file.Values[len(file.Values)-1]
		image := c.now[here.Offset:][:here.Size]
		old, size := c.old[file.Offset:][:file.Size], c.plan.known[0][last.Type].Size
		place, finish, err = t.convert(image, old, file.capacity(), size)
		if err != nil {
			return nil, nil, err
		}
	}
	for i, v := range p.values {
		f, h := &file.Values[i], &here.Values[i]
		if c.isRing {
			clear(c.now[h.Offset:][:h.Count*v.now.Size])
		}
		if f.Count != file.capacity() {
			return nil, nil, fmt.Errorf("%d %s, and %d %s", file.capacity(), file.Values[0].What, f.Count, f.What)
		}
		arrays = append(arrays, &converted{pair: v, name: f.What + " of " + file.Name, many: true, from: f.Offset,
			count: f.Count, stride: v.old.Size, to: h.Offset, room: h.Count, step: v.now.Size,
			place: place, skip: !c.isRing})
	}
	return arrays, finish, nil
}

// nothingLost returns an error if bytes of the file's state that no place holds aren't zeros.
func (c *converter) nothingLost() error {
	for _, a := range c.places {
		c.plan.covered = append(c.plan.covered, span{a.from, a.end()})
	}
	slices.SortFunc(c.plan.covered, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	at := uint64(0)
	for _, s := range append(c.plan.covered, span{uint64(len(c.old)), uint64(len(c.old))}) {
		if s.from > at {
			gap := c.old[at:s.from]
			if k := bytes.IndexFunc(gap, func(r rune) bool { return r != 0 }); k >= 0 {
				return c.lostAt(at + uint64(k))
			}
		}
		at = max(at, s.to)
	}
	return nil
}

func (c *converter) lostAt(at uint64) error {
	what := ""
	for _, o := range c.plan.file.Objects {
		if at >= o.Offset && at-o.Offset < o.Size {
			what = fmt.Sprintf(", in %d bytes of %s that %s made", o.Size, o.Type, cmp.Or(o.Made, o.Scope))
		}
	}
	return fmt.Errorf("the value at offset %#x%s is of no known type: no link of the root, a pool or a container "+
		"leads there; save.Values names such values, in the program that writes the file", c.plan.file.Mark+at, what)
}

package wire

import "encoding/binary"

// operation is a mask of the fields that change in a thing between two views. Its bytes are:
//
//	kind u8, number u16, mask u8, then by mask
//
// Mask 0 removes the thing. Coordinates are differences if these fit in a byte, or else absolute
// values. A new thing has all fields.
type operation uint8

const (
	addX       operation = 1 << iota // i8
	setX                             // i16
	addY                             // i8
	setY                             // i16
	setHeading                       // u8
	gone       operation = 0
	appear               = setX | setY | setHeading
)

// operationMost is the size of the longest operation, in bytes.
const operationMost = 9

// operationSizes are the sizes of operations, in bytes, by mask. 0 means that the mask is invalid.
var operationSizes = func() (sizes [256]uint8) {
	for mask := range operation(2 * setHeading) {
		if mask&addX != 0 && mask&setX != 0 || mask&addY != 0 && mask&setY != 0 {
			continue
		}
		for bit, size := range [...]uint8{1, 2, 1, 2, 1} {
			sizes[mask] += size * uint8(mask>>bit&1)
		}
		sizes[mask] += 4
	}
	return sizes
}()

func (o operation) size() int { return int(operationSizes[o]) }

// change returns the operation that changes a thing from one value to another.
func change(from, to *Thing) (o operation) {
	if d := int(to.X) - int(from.X); d == int(int8(d)) && d != 0 {
		o |= addX
	} else if d != 0 {
		o |= setX
	}
	if d := int(to.Y) - int(from.Y); d == int(int8(d)) && d != 0 {
		o |= addY
	} else if d != 0 {
		o |= setY
	}
	if from.Heading != to.Heading {
		o |= setHeading
	}
	return o
}

// append appends an operation that changes a thing from from to to. It uses from only for
// differences.
func (o operation) append(dst []byte, from, to *Thing) []byte {
	dst = append(dst, to.Kind, byte(to.Number), byte(to.Number>>8), byte(o))
	switch {
	case o&addX != 0:
		dst = append(dst, byte(to.X-from.X))
	case o&setX != 0:
		dst = binary.LittleEndian.AppendUint16(dst, uint16(to.X))
	}
	switch {
	case o&addY != 0:
		dst = append(dst, byte(to.Y-from.Y))
	case o&setY != 0:
		dst = binary.LittleEndian.AppendUint16(dst, uint16(to.Y))
	}
	if o&setHeading != 0 {
		dst = append(dst, to.Heading)
	}
	return dst
}

// apply applies an operation to a thing. b has the bytes after the mask, all of them. It returns
// false if a coordinate overflows.
func (o operation) apply(b []byte, t *Thing) bool {
	x, y := int(t.X), int(t.Y)
	switch {
	case o&addX != 0:
		x += int(int8(b[0]))
		b = b[1:]
	case o&setX != 0:
		x = int(int16(binary.LittleEndian.Uint16(b)))
		b = b[2:]
	}
	switch {
	case o&addY != 0:
		y += int(int8(b[0]))
		b = b[1:]
	case o&setY != 0:
		y = int(int16(binary.LittleEndian.Uint16(b)))
		b = b[2:]
	}
	if o&setHeading != 0 {
		t.Heading = b[0]
	}
	t.X, t.Y = int16(x), int16(y)
	return x == int(t.X) && y == int(t.Y)
}

// appendOperations appends the operations from base to want, in the order of keys, and sets Since
// of want's things. whole is false if the packet would have more than most bytes.
func appendOperations(dst []byte, most int, want, base *View) (packet []byte, whole bool) {
	from, to := base.Shown(), want.Shown()
	i := 0
	for j := range to {
		t := &to[j]
		for ; i < len(from) && from[i].key() < t.key(); i++ {
			if len(dst)+gone.size() > most {
				return dst, false
			}
			dst = gone.append(dst, nil, &from[i])
		}
		o, old := appear, (*Thing)(nil)
		if i < len(from) && from[i].key() == t.key() {
			old = &from[i]
			o = change(old, t)
			i++
		}
		if old != nil && o == 0 {
			t.Since = old.Since
			continue
		}
		if len(dst)+o.size() > most {
			return dst, false
		}
		t.Since = want.Tick
		dst = o.append(dst, old, t)
	}
	for ; i < len(from); i++ {
		if len(dst)+gone.size() > most {
			return dst, false
		}
		dst = gone.append(dst, nil, &from[i])
	}
	return dst, true
}

// parseOperations applies operations to base and puts the result into v. It returns false if they
// are malformed.
func (v *View) parseOperations(b []byte, base *View) bool {
	from, last := base.Shown(), uint32(0)
	v.Count = 0
	for len(b) > 0 {
		if len(b) < gone.size() {
			return false
		}
		t, o := Thing{Kind: b[0], Number: binary.LittleEndian.Uint16(b[1:])}, operation(b[3])
		size := o.size()
		if size == 0 || size > len(b) || t.Kind == 0 || t.key() <= last {
			return false
		}
		last = t.key()
		for len(from) > 0 && from[0].key() < last {
			if !v.add(&from[0]) {
				return false
			}
			from = from[1:]
		}
		known := len(from) > 0 && from[0].key() == last
		if known {
			t, from = from[0], from[1:]
		}
		if !known && o != appear || !o.apply(b[gone.size():size], &t) || o != gone && !v.add(&t) {
			return false
		}
		b = b[size:]
	}
	for i := range from {
		if !v.add(&from[i]) {
			return false
		}
	}
	return true
}

// add adds a thing. It returns false if the view is full.
func (v *View) add(t *Thing) bool {
	if v.Count == Things {
		return false
	}
	v.Things[v.Count] = *t
	v.Count++
	return true
}

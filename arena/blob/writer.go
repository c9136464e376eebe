package blob

import (
	"fmt"
	"hash/crc32"
	"math"
	"reflect"
	"unsafe"
)

// Writer writes the nodes of one blob to a block, in the order in which they are put. If the block
// runs out of room, the writer only counts bytes: Finish then fails, and Size returns the size that
// the block needs.
type Writer[T any] struct {
	types *types
	block []byte
	at    uint64 // offset of the next node, before alignment
	text  string // of the types; it follows the last node
}

// Writer clears the block and begins a blob in it. The block must begin at a multiple of 8, as a
// block from arena.NewBlock, a scope's BytesUnzeroed or make does.
func (f Format[T]) Writer(block []byte) *Writer[T] {
	f.declared()
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(block))); at%align != 0 {
		panic(bug("the block must begin at a multiple of %d, and this one begins %d past one", align, at%align))
	}
	block = block[:min(uint64(len(block)), math.MaxUint32)]
	clear(block)
	return &Writer[T]{types: f.types, block: block, at: uint64(headerSize), text: f.types.text}
}

// Bare makes the blob omit the description of its types, which takes a short line of text for each
// field. Verify checks a bare blob like any other. It compares the types by fingerprint only, so an
// error for other types can't name the field that differs.
func (w *Writer[T]) Bare() { w.text = "" }

// IsBare reports whether a blob that Verify accepted has no description of its types.
func IsBare(data []byte) bool {
	h := (*header)(unsafe.Pointer(unsafe.SliceData(data)))
	return len(data) >= int(headerSize) && h.text == h.size
}

// Put adds a node and returns a link to it. Cost: a copy, and a look-up in a map of types.
func Put[U, T any](w *Writer[T], node U) Link[U] {
	at := w.take(w.layout(reflect.TypeFor[U]()), 1)
	Set(w, Link[U]{at}, node)
	return Link[U]{at}
}

// PutAs adds a node of one of U's variants, sets its Tag, and returns a link to it.
func PutAs[U, V, T any](w *Writer[T], as Variant[U, V], node V) Link[U] {
	at := Put(w, node).offset
	Set(w, Link[Tag]{at}, as.tag())
	return Link[U]{at}
}

// PutAll adds adjacent nodes and returns them as an Array.
func PutAll[U, T any](w *Writer[T], nodes ...U) Array[U] {
	if len(nodes) == 0 {
		return Array[U]{}
	}
	at := w.take(w.layout(reflect.TypeFor[U]()), uint64(len(nodes)))
	for i, node := range nodes {
		Set(w, Link[U]{at + uint32(i)*uint32(unsafe.Sizeof(node))}, node)
	}
	return Array[U]{at, uint32(len(nodes))}
}

// Set rewrites a node, for links that weren't known at its Put. It panics if the node isn't within
// the bytes put so far.
func Set[U, T any](w *Writer[T], to Link[U], node U) {
	if to.offset == 0 || uint64(to.offset)+uint64(unsafe.Sizeof(node)) > w.at {
		panic(bug("Set of a %v that wasn't put here", reflect.TypeFor[U]()))
	}
	if uint64(to.offset)+uint64(unsafe.Sizeof(node)) <= uint64(len(w.block)) {
		*(*U)(unsafe.Pointer(&w.block[to.offset])) = node
	}
}

// Str adds a text and returns a Str for it. Equal texts aren't shared.
func (w *Writer[T]) Str(text string) Str {
	if text == "" {
		return Str{}
	}
	at := w.take(&layout{size: 1, align: 1}, uint64(len(text)))
	if w.fits(0) {
		copy(w.block[at:], text)
	}
	return Str{Array[byte]{at, uint32(len(text))}}
}

// Size returns the bytes that the block needs for all nodes so far.
func (w *Writer[T]) Size() int { return int(w.at) + len(w.text) }

// Finish completes the blob and ends the writer. data is the front of the block. Finish checks all
// links as Verify does, with scratch memory on the Go heap. It returns an error if a link leads
// outside the blob's nodes. If the block is too small, the error has the size that the blob needs.
func (w *Writer[T]) Finish(root Link[T]) (data []byte, err error) {
	if !w.fits(uint64(len(w.text))) {
		return nil, fmt.Errorf("blob: full: a blob of %s needs %d bytes, the block has %d", w.types.list[0].name,
			w.Size(), len(w.block))
	}
	data, w.block = w.block[:w.Size()], nil
	copy(data[w.at:], w.text)
	h := (*header)(unsafe.Pointer(unsafe.SliceData(data)))
	*h = header{magic: magic, size: uint32(len(data)), types: w.types.print, root: root.offset, text: uint32(w.at)}
	c := checker{types: w.types, data: data, end: h.text}
	room := uint32(64)
	for c.seen = room; c.seen == room; { // one try is enough for most blobs
		room *= 4
		c.tables(make([]byte, scratchSize(room)), room)
		err = c.all(h.root)
	}
	if err != nil {
		return nil, err
	}
	h.nodes = c.seen
	c.tables(make([]byte, ScratchSize(data)), nodesOf(data)) // as Verify will have them
	if err = c.all(h.root); err != nil {
		return nil, err
	}
	h.sum = sumOf(data)
	return data, nil
}

// fits reports whether all nodes so far and `more` bytes fit in the block.
func (w *Writer[T]) fits(more uint64) bool {
	return w.at+more <= uint64(len(w.block))
}

func (w *Writer[T]) layout(t reflect.Type) *layout {
	i, ok := w.types.index[t]
	if !ok {
		panic(bug("Put of a %v, which no field of %s leads to", t, w.types.list[0].name))
	}
	return &w.types.list[i]
}

// take returns the offset for `count` new nodes, in the block or past its end.
func (w *Writer[T]) take(l *layout, count uint64) uint32 {
	at := (w.at + uint64(l.align) - 1) &^ uint64(l.align-1)
	w.at = at + count*uint64(l.size)
	return uint32(min(at, math.MaxUint32))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumOf(data []byte) uint32 {
	sum := crc32.Update(0, castagnoli, data[:sumAt])
	return crc32.Update(sum, castagnoli, data[sumAt+4:])
}

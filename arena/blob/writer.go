package blob

import (
	"fmt"
	"hash/crc32"
	"math"
	"reflect"
	"unsafe"
)

// Writer lays the nodes of one blob in a block, in the order in which they are put. When the block
// is full it goes on counting: Finish fails then, and Size is what the block needs.
type Writer[T any] struct {
	types *types
	block []byte
	at    uint64 // where the next node may begin
	text  string // of the types: what lies behind the last node
}

// Writer begins a blob in the block, which it clears. The block begins at a multiple of 8, as
// arena.NewBlock, a scope's BytesUnzeroed and make give it.
func (f Format[T]) Writer(block []byte) *Writer[T] {
	f.declared()
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(block))); at%align != 0 {
		panic(bug("a block begins at a multiple of %d, this one %d past one", align, at%align))
	}
	block = block[:min(uint64(len(block)), math.MaxUint32)]
	clear(block)
	return &Writer[T]{types: f.types, block: block, at: uint64(headerSize), text: f.types.text}
}

// Bare has the blob leave out the description of its types, which takes as many bytes as the names of
// their fields. Verify looks at a bare blob as at any other, and compares the types by their
// fingerprint: of other types it can't say which field differs.
func (w *Writer[T]) Bare() { w.text = "" }

// IsBare reports whether a blob, which Verify let through, has no description of its types.
func IsBare(data []byte) bool {
	h := (*header)(unsafe.Pointer(unsafe.SliceData(data)))
	return len(data) >= int(headerSize) && h.text == h.size
}

// Put adds a node. Cost: a copy, and a look into a map of types.
func Put[U, T any](w *Writer[T], node U) Link[U] {
	at := w.take(w.layout(reflect.TypeFor[U]()), 1)
	Set(w, Link[U]{at}, node)
	return Link[U]{at}
}

// PutAs adds a node of one of U's variants, and sets its Tag.
func PutAs[U, V, T any](w *Writer[T], as Variant[U, V], node V) Link[U] {
	at := Put(w, node).offset
	Set(w, Link[Tag]{at}, as.tag())
	return Link[U]{at}
}

// PutAll adds nodes side by side.
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

// Set writes a node again, that was put when it couldn't know all that it links to.
func Set[U, T any](w *Writer[T], to Link[U], node U) {
	if to.offset == 0 || uint64(to.offset)+uint64(unsafe.Sizeof(node)) > w.at {
		panic(bug("Set of a %v that wasn't put here", reflect.TypeFor[U]()))
	}
	if uint64(to.offset)+uint64(unsafe.Sizeof(node)) <= uint64(len(w.block)) {
		*(*U)(unsafe.Pointer(&w.block[to.offset])) = node
	}
}

// Str adds a text. Two equal ones lie there twice.
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

// Size is how many bytes the block needs for what was put so far.
func (w *Writer[T]) Size() int { return int(w.at) + len(w.text) }

// Finish makes a blob of what was put, and the writer is done. data is the front of the block. It
// checks all as Verify does, with scratch on the Go heap: a link of another writer is an error
// here. So is a full block, which says what it needs.
func (w *Writer[T]) Finish(root Link[T]) (data []byte, err error) {
	if !w.fits(uint64(len(w.text))) {
		return nil, fmt.Errorf("blob: full: a blob of %s needs %d bytes, the block has %d", w.types.list[0].name, w.Size(), len(w.block))
	}
	data, w.block = w.block[:w.Size()], nil
	copy(data[w.at:], w.text)
	h := (*header)(unsafe.Pointer(unsafe.SliceData(data)))
	*h = header{magic: magic, size: uint32(len(data)), types: w.types.print, root: root.offset, text: uint32(w.at)}
	c := checker{types: w.types, data: data, end: h.text}
	room := uint32(64)
	for c.seen = room; c.seen == room; { // few blobs need a second try
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

// fits says whether all that was put, and so many bytes more, are in the block.
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

// take gives the offset of so many nodes, in the block or beyond it.
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

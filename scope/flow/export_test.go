package flow

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena/blob"
)

func DataOf(g *Graph, i Instance) []byte { return unsafe.Slice((*byte)(g.at(i)), g.Data()) }

func BlobOf(g *Graph, size int) []byte { return unsafe.Slice((*byte)(g.base), size) }

func OffsetOf(g *Graph, node int) int { return int(offsetOf(g.root.Nodes.Get(g.blob)[node])) }

// NameOf returns the offset of the table of the nodes' names in the blob.
func NameOf(g *Graph) int { return int(spanOf(&g.root.Names).offset) }

// Root returns the offset of the root in the blob, and the blob.Blob.
func (g *Graph) Root() (at int, b blob.Blob) {
	return int(uintptr(unsafe.Pointer(g.root)) - uintptr(g.base)), g.blob
}

// TemplateOf returns the offset of a new instance's data in the blob. ParameterOf returns the
// offset of the first event's first parameter.
func TemplateOf(g *Graph) int { return int(spanOf(&g.root.Template).offset) }

func ParameterOf(g *Graph) int {
	return int(spanOf(&g.root.Signals.Get(g.blob)[0].Parameters).offset)
}

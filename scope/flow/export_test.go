package flow

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena/blob"
)

// DataOf is the dynamic data of an instance.
func DataOf(g *Graph, i Instance) []byte { return unsafe.Slice((*byte)(g.at(i)), g.Data()) }

// BlobOf is so many bytes of a graph's own blob.
func BlobOf(g *Graph, size int) []byte { return unsafe.Slice((*byte)(g.base), size) }

// OffsetOf is where a node lies in the blob.
func OffsetOf(g *Graph, node int) int { return int(offsetOf(g.root.Nodes.Get(g.blob)[node])) }

// NameOf is where the table of the nodes' names lies in the blob.
func NameOf(g *Graph) int { return int(spanOf(&g.root.Names).offset) }

// Root is where the root lies in the blob, and Blob what package blob has of it.
func (g *Graph) Root() (at int, b blob.Blob) {
	return int(uintptr(unsafe.Pointer(g.root)) - uintptr(g.base)), g.blob
}

// TemplateOf is where the data of a new instance lies in the blob, and ParameterOf the first event's
// first parameter.
func TemplateOf(g *Graph) int { return int(spanOf(&g.root.Template).offset) }

func ParameterOf(g *Graph) int {
	return int(spanOf(&g.root.Signals.Get(g.blob)[0].Parameters).offset)
}

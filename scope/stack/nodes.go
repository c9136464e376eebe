package stack

import (
	"iter"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Node describes work that a scope does when it closes. A label, or a pool of plain data, has no
// name: it is identified by the bytes of its node, which don't change while the arena is frozen.
type Node struct {
	Name     string
	At, Size uint64 // offset and size of the node
	Place    uint64 // of an owned value, for OwnedAt
}

// NodesSince returns the nodes of the topmost scope from an offset on, newest first.
func (st *Stack) NodesSince(from uint64) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for at := st.h.Chain; at >= from && at != 0; {
			object, node := st.h.Newest(at)
			class, size := node/arena_c.NodeClass, uint64(0)
			place := uint64(0)
			name := "a " + classes.name[class%classesMax]
			switch class {
			case arena_c.ClassC:
				name, size = "a finalizer of C", 2*uint64(unsafe.Sizeof(object))
			case arena_c.ClassPool:
				size = 8
				name = st.PoolObject(st.row.Pool(*(*uint64)(object) % poolNext))
				if name != "" {
					name = "a pool with a " + name
				}
			case arena_c.ClassTemp:
				name, size = "temporaries", 8
			case classOwned:
				name, size, place = "an owned value", 8, *(*uint64)(object)
			case classLabel:
				name, size = "", uint64(unsafe.Sizeof(labelNode{}))
			case classSlice:
				size = uint64(unsafe.Sizeof(sliceNode{}))
				name = "a slice with a " + classes.name[(*sliceNode)(object).class%classesMax]
			}
			if !yield(Node{name, at - arena_c.NodeSize, arena_c.NodeSize + size, place}) {
				return
			}
			at = node % arena_c.NodeClass
		}
	}
}

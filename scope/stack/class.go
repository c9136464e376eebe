package stack

import (
	"sync"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// The classes that aren't types. Package arena_c has the classes that C also uses.
const (
	classOwned = arena_c.ClassTemp + 1 + iota // a word of the owned table
	classLabel                                // a labelNode
	classSlice                                // a sliceNode
	classFirst                                // the first class that a type declares
)

// classesMax bounds the classes of a process. It is small, because the collector scans the whole
// table.
const classesMax = 1 << 12

// classes is read without a lock: each place is written once, before NewClass returns its number.
var classes struct {
	sync.Mutex
	used uint64
	run  [classesMax]func(unsafe.Pointer) error
	name [classesMax]string
	size [classesMax]uint64 // of an object
}

// FinalizerOf begins the name of a class.
const FinalizerOf = "finalizer of "

// NewClass declares objects of a size whose finalizer is run, and returns their class.
func NewClass(name string, size uint64, run func(unsafe.Pointer) error) uint64 {
	classes.Lock()
	defer classes.Unlock()
	c := max(classes.used, classFirst)
	if c == classesMax {
		panic(Misusef("more than %d Objects: declare each once, at package level", classesMax-classFirst))
	}
	classes.used = c + 1
	classes.run[c], classes.name[c], classes.size[c] = run, name, size
	return c
}

// PoolObject returns the finalizer of a pool's objects, "finalizer of T", or "" if they have none.
func (*Stack) PoolObject(p *arena_c.Pool) string { return classes.name[p.Kind%classesMax] }

// sliceNode is the node of the objects after it.
type sliceNode struct{ front, stride, class, left uint64 }

// Objects makes n zeroed objects of a class in a scope, after one node, in one bump. size is the
// size of all objects, at most OffsetMax. It returns nil if the scope refuses.
func Objects(h *arena_c.Scopes, gen uint64, n int, stride, size, class uint64) unsafe.Pointer {
	front := uint64(unsafe.Sizeof(sliceNode{}))
	size = min(front+size, arena_c.OffsetMax)
	p := h.Node(gen, size, arena_c.NodeSize-1)
	if p == nil {
		return nil
	}
	arena_c.Zero(p, uintptr(size))
	*(*sliceNode)(p) = sliceNode{front, stride, class, uint64(n)}
	h.Link(p, classSlice)
	NoteMade(h)
	return unsafe.Add(p, front)
}

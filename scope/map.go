package scope

import (
	"fmt"
	"hash/maphash"
	"iter"
	"math/bits"
	"reflect"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

// Map finds at most n values of V by keys of K. The entries stand in the order of insertion; an index of hashes leads
// to them. The hashes are seeded at random, because players choose keys; the order never depends on them, so two runs
// range alike. The bytes do: compare the entries of two runs, not their blocks.
//
// It owns no byte of its scope until the first Set, or Reserve, takes all at once: n entries, each a K, a V and 4
// bytes, aligned, and 4 bytes for each cell of the index, the least power of two from n * 4/3 up. They go back when the
// scope closes. Then there is nothing to read, and Set and Reserve panic.
//
// Don't copy a Map: pass a pointer. One goroutine at a time writes; while none does, many may read.
type Map[K comparable, V any] struct {
	room[entry[K, V]] // behind the entries lies the index: of each hash the number of its entry, counted from 1
	cells             uint32
	seed              maphash.Seed
}

type entry[K comparable, V any] struct {
	key   K
	hash  uint32
	value V
}

// mapMax keeps the size of the index within uint32.
const mapMax = 1 << 28

// NewMap makes an empty map for up to n values in s, n at most 2^28. Cost: a few ns, no byte of the arena. An n out of
// range, a closed scope, and keys that have an arena.String or arena.Slice, which compare by place, panic.
func NewMap[K comparable, V any](s Scope, keys Maker[K], values Maker[V], n int) Map[K, V] {
	keys.declared()
	values.declared()
	if n > mapMax {
		panic(&Misuse{fmt.Sprintf("a Map of %d elements: at most %d", n, mapMax), false})
	}
	if byPlace[K]() {
		panic(&Misuse{fmt.Sprintf("a Map of keys %v: an arena.String or arena.Slice compares by place; use an array of bytes",
			reflect.TypeFor[K]()), false})
	}
	cells := uint32(1) << bits.Len(uint(max(0, n*4-1)/3))
	size := uint32(unsafe.Sizeof(entry[K, V]{}))
	extra := (cells*4 + size - 1) / size // entries as large as the index
	return Map[K, V]{newRoom[entry[K, V]](s, n, int(extra), "a Map"), cells, maphash.MakeSeed()}
}

// Set gives k the value v. It is false when k is new and there are n already; also when the bytes are not taken yet and
// the scope has no room, or is covered: then the scope remembers ([Scope.Err]). In a frozen scope that panics. A key
// that differs from itself, a NaN, could never be found: it panics. Cost: that of the hash and a few ns, the first
// O(n).
func (m *Map[K, V]) Set(k K, v V) bool {
	if k != k {
		panic(&Misuse{fmt.Sprintf("Set in a Map: a %v that differs from itself", reflect.TypeFor[K]()), false})
	}
	if !m.take("Set in a Map in") {
		return false
	}
	index, hash := m.index(), m.hash(k)
	cell := m.find(k, hash)
	if index[cell] == 0 {
		if m.used == m.limit {
			return false
		}
		m.items[m.used] = entry[K, V]{k, hash, v}
		m.used++
		index[cell] = uint32(m.used)
		return true
	}
	m.items[index[cell]-1].value = v
	return true
}

// Reserve takes the bytes now: for play after the scope is covered or frozen, or before a Make in it, whose constructor
// may not take bytes for what is older than itself. It is false when the scope has no room or doesn't allocate.
func (m *Map[K, V]) Reserve() bool { return m.reserve("Reserve of a Map in") }

// Get is the value of k, or nil. The pointer is good until Delete, which may move any value, or Clear, and no longer
// than the scope is open.
func (m *Map[K, V]) Get(k K) *V {
	if m.Len() == 0 {
		return nil
	}
	at := m.index()[m.find(k, m.hash(k))]
	if at == 0 {
		return nil
	}
	return &m.items[at-1].value
}

// Delete takes k and its value away and puts the last entry in their place. It is false when there is no k.
func (m *Map[K, V]) Delete(k K) bool {
	if m.Len() == 0 {
		return false
	}
	index := m.index()
	cell := m.find(k, m.hash(k))
	gap := index[cell]
	if gap == 0 {
		return false
	}
	last := m.items[m.used-1]
	index[m.find(last.key, last.hash)] = gap
	m.items[gap-1] = last
	m.used--
	gone(m.items[m.used : m.used+1])
	m.empty(cell)
	return true
}

// Clear takes all entries away and keeps the bytes. Cost: O(n).
func (m *Map[K, V]) Clear() {
	if m.Len() > 0 {
		arena_c.Zero(unsafe.Pointer(&m.index()[0]), uintptr(m.cells)*4)
		gone(m.items[:m.used])
		m.used = 0
	}
}

// All ranges over keys and values in the order of their insertion, as Delete left it; also over those that Set adds
// meanwhile. Delete of the current key is fine: what took its place comes next.
func (m *Map[K, V]) All() iter.Seq2[K, *V] { return m.each }

func (m *Map[K, V]) each(yield func(K, *V) bool) {
	for i := 0; i < m.Len(); {
		e := &m.items[i]
		key := e.key
		if !yield(key, &e.value) {
			return
		}
		if i < m.Len() && e.key == key {
			i++
		}
	}
}

// byPlace says whether K is one of arena's references to many, or has one for a field: two of the same contents differ.
func byPlace[K any]() bool {
	t := reflect.TypeFor[K]()
	isMany := func(t reflect.Type) bool {
		return t.PkgPath() == reflect.TypeFor[arena.String]().PkgPath() && (t.Name() == "String" || strings.HasPrefix(t.Name(), "Slice["))
	}
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			if isMany(t.Field(i).Type) {
				return true
			}
		}
	}
	return isMany(t)
}

func (m *Map[K, V]) hash(k K) uint32 { return uint32(maphash.Comparable(m.seed, k)) }

// index is what lies behind the entries: a table whose size is a power of two, at most three quarters of it in use.
func (m *Map[K, V]) index() []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(&m.items[m.limit])), m.cells)
}

// find is the cell of k: from where its hash says, the first that leads to k, or an empty one.
func (m *Map[K, V]) find(k K, hash uint32) (cell uint32) {
	index := m.index()
	for cell = hash & (m.cells - 1); index[cell] != 0; cell = (cell + 1) & (m.cells - 1) {
		if e := &m.items[index[cell]-1]; e.hash == hash && e.key == k {
			break
		}
	}
	return cell
}

// empty empties a cell. A cell behind it moves in if its hash leads to there, and leaves the next one to be emptied.
func (m *Map[K, V]) empty(cell uint32) {
	index, mask := m.index(), m.cells-1
	for at := (cell + 1) & mask; index[at] != 0; at = (at + 1) & mask {
		home := m.items[index[at]-1].hash & mask
		if (at-home)&mask >= (at-cell)&mask {
			index[cell] = index[at]
			cell = at
		}
	}
	index[cell] = 0
}

package container

import (
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"unsafe"

	"github.com/upfront-mem/upfront/scope"
)

// errAllKeys is made once: who is refused makes no Go allocation.
var errAllKeys = fmt.Errorf("container: the StringMap has all its keys: %w", scope.ErrFull)

// ErrLongKey is what Set of a StringMap says to a key that is longer than its keys may be.
var ErrLongKey = errors.New("container: the key is longer than the keys of this StringMap may be")

// StringMap finds at most n values of V by strings of at most k bytes each. It copies their bytes
// into its own, so a key may come from anywhere. The keys stand in the order of insertion, as in a
// Map, and their hashes are seeded at random.
//
// Its bytes are 8 for each cell of the index, the least power of two from n * 4/3 up, n
// values, rounded up to 8, and n * (k + 8) for the keys.
type StringMap[V any] struct {
	table[V]
	names   []name
	bytes   []byte // of the keys, most for each
	most    int
	entered uint32 // names that ever came
}

// name is what is known of a key beside its bytes.
type name struct {
	size   uint32
	number uint32 // it was the so-maniest to come: tells it from another that took its place
}

// NewStringMap makes an empty map in s for up to n keys of at most k bytes each, n at most 2^28.
// Cost: O(n * k), the zeroing. A full scope unwinds; a scope that is not the topmost, and an n or k
// out of range, panic.
func NewStringMap[V any](s scope.Scope, values scope.Maker[V], n, k int) StringMap[V] {
	checkMap("StringMap", n, declared(values))
	if k < 0 || k > nMax {
		panic(&scope.Misuse{Text: fmt.Sprintf("a StringMap of keys of %d bytes: at most %d", k, nMax)})
	}
	cells := cellsFor(n)
	rest := take(s, cells*cellSize+sizeOf[name](n)+words[V](n)+uint64(n)*uint64(k))
	index, names, allValues := cut[cell](&rest, int(cells)), cut[name](&rest, n), cut[V](&rest, n)
	return StringMap[V]{table: table[V]{life: lifeOf(s), seed: maphash.MakeSeed(), index: index, values: allValues[:0]},
		names: names[:0], bytes: rest, most: k}
}

// Set gives a key the value v. It gives [ErrLongKey] for a key of more than k bytes, and
// an error that is [scope.ErrFull] when the key is new and n keys are in it; else nil. Cost: that of the hash, the
// copy of the key, and a few ns; no Go allocation.
func (m *StringMap[V]) Set(key string, v V) error {
	if !m.life.began().alive() {
		panic(closed{m.life, "Set in a StringMap"})
	}
	if len(key) > m.most {
		return ErrLongKey
	}
	hash := m.hash(key)
	at, entry := m.find(key, hash)
	if entry >= 0 {
		m.values[entry] = v
		return nil
	}
	entry = len(m.names)
	if entry == cap(m.names) {
		return errAllKeys
	}
	m.entered++
	m.names, m.values = append(m.names, name{uint32(len(key)), m.entered}), append(m.values, v)
	copy(m.slot(entry), key)
	*m.index.at(at) = cell{hash, uint32(entry) + 1}
	return nil
}

// Get is the value of a key, in place, or nil when there is no such key. The pointer is good until
// Delete, which may move any value, or Clear, and no longer than the scope is open. No Go
// allocation.
func (m *StringMap[V]) Get(key string) *V {
	if !m.life.began().alive() {
		return nil
	}
	if _, entry := m.find(key, m.hash(key)); entry >= 0 {
		return &m.values[entry]
	}
	return nil
}

// Delete takes a key and its value away and puts the last in their place. It is false when there is
// no such key.
func (m *StringMap[V]) Delete(key string) bool {
	if !m.life.began().alive() {
		return false
	}
	at, gap := m.find(key, m.hash(key))
	if gap < 0 {
		return false
	}
	last := len(m.names) - 1
	m.drop(at, gap, m.hash(m.key(last)))
	copy(m.slot(gap), m.key(last))
	m.names[gap] = m.names[last]
	m.names = m.names[:last]
	return true
}

// Clear takes all keys and values away. Cost: O(n).
func (m *StringMap[V]) Clear() {
	if m.life.began().alive() {
		m.clear()
		m.names = m.names[:0]
	}
}

// All ranges over keys and values in the order of insertion, as Delete left it; also over those
// that Set adds meanwhile. Delete of the current key is fine: what took its place comes next. A key
// is a view of the map's bytes, good until Delete or Clear; strings.Clone gives one to keep.
func (m *StringMap[V]) All() iter.Seq2[string, *V] { return m.each }

func (m *StringMap[V]) each(yield func(string, *V) bool) {
	for i := 0; i < m.Len(); {
		name := m.names[i]
		if !yield(m.key(i), &m.values[i]) {
			return
		}
		if i < m.Len() && m.names[i] == name {
			i++
		}
	}
}

// slot is the bytes for the key of an entry, key those that it has.
func (m *StringMap[V]) slot(entry int) []byte { return m.bytes[entry*m.most:][:m.most] }

func (m *StringMap[V]) key(entry int) string {
	return unsafe.String(unsafe.SliceData(m.slot(entry)), m.names[entry].size)
}

func (m *StringMap[V]) hash(key string) uint32 { return uint32(maphash.String(m.seed, key)) }

// find is where the cell of a key is, or an empty one for it, and its entry, -1 when there is none.
func (m *StringMap[V]) find(key string, hash uint32) (at uint32, entry int) {
	for at = hash; ; at++ {
		c := m.index.at(at)
		if c.entry == 0 {
			return at, -1
		}
		if entry = int(c.entry) - 1; c.hash == hash && m.key(entry) == key {
			return at, entry
		}
	}
}

package container

import (
	"errors"
	"fmt"
	"iter"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// ErrLongKey is what Set of a StringMap says to a key that is longer than its keys may be.
var ErrLongKey = errors.New("container: the key is longer than the keys of this StringMap may be")

// StringMap finds at most n values of V by strings of at most k bytes each. It copies their bytes
// into its own, so a key may come from anywhere. A value doesn't move. The order and the seed of
// the hashes are as in a Map.
//
// Its bytes are 24, 8 for each cell of the index, the least power of two from n * 4/3 up, 8 * n for
// the order, n values, rounded up to 8, and n * (k + 8) for the keys.
type StringMap[V any] struct {
	table[V]
	allNames
	full *scope.FullError // what Set was refused with first
}

// allNames are the keys of a StringMap.
type allNames struct {
	sizes []uint64 // of each key
	bytes []byte   // most for each
	most  int
}

// NewStringMap makes an empty map in s for up to n keys of at most k bytes each, n at most 2^28.
// Cost: O(n * k), the zeroing. A full scope unwinds; a scope that is not the topmost, and an n or k
// out of range, panic.
func NewStringMap[V any](s scope.Scope, values scope.Maker[V], n, k int) StringMap[V] {
	check("StringMap", n, nMax, "keys", declared(values))
	checkKeys(k)
	bytes := take[StringMap[V]](s, stringMapSize[V](n, k))
	kept := keptIn(s)
	t, allKeys, allValues := layStringMap[V](bytes, n, k)
	t.begin(kept)
	if kept {
		look := func(image []byte) error {
			t, allKeys, _ := layStringMap[V](image, n, k)
			m := StringMap[V]{table: table[V]{entries: t}, allNames: allKeys}
			return m.look()
		}
		note[StringMap[V]](s, bytes, look, valuesAt("values", bytes, allValues))
	}
	return StringMap[V]{table: table[V]{life: lifeOf(s), entries: t, values: allValues, kept: kept}, allNames: allKeys}
}

// NewStringMapOn makes an empty map on a heap for up to n keys of at most k bytes each, as NewListOn makes a list. Cost:
// O(n * k), the zeroing. An n or k out of range panics.
func NewStringMapOn[V any](a arena.Reallocator, values scope.Maker[V], n, k int) (StringMap[V], bool) {
	check("StringMap", n, nMax, "keys", declared(values))
	checkKeys(k)
	bytes, life, kept := takeOn(a, stringMapSize[V](n, k))
	if bytes == nil {
		return StringMap[V]{}, false
	}
	t, allKeys, allValues := layStringMap[V](bytes, n, k)
	t.begin(kept)
	return StringMap[V]{table: table[V]{life: life, entries: t, values: allValues, kept: kept, on: a}, allNames: allKeys}, true
}

func checkKeys(k int) {
	if k < 0 || k > nMax {
		panic(&scope.Misuse{Text: fmt.Sprintf("a StringMap of keys of %d bytes: at most %d", k, nMax)})
	}
}

func layStringMap[V any](bytes []byte, n, k int) (entries, allNames, []V) {
	t, sizes, values := layEntries(&bytes, n), cut[uint64](&bytes, n), cut[V](&bytes, n)
	return t, allNames{sizes, bytes, k}, values
}

func stringMapSize[V any](n, k int) uint64 {
	return entriesSize(n) + words[uint64](n) + words[V](n) + uint64(n)*uint64(k)
}

// In is the map as a snapshot from outside has it: as that of a List.
func (m *StringMap[V]) In(v View) *StringMap[V] {
	life, n := m.life.began(), len(m.order)
	image := imageOf(v, m.words, stringMapSize[V](n, m.most))
	t, allKeys, allValues := layStringMap[V](image, n, m.most)
	return &StringMap[V]{table: table[V]{life: life, entries: t, values: allValues}, allNames: allKeys}
}

// look refuses an image that no play leaves.
func (m *StringMap[V]) look() error {
	for _, size := range m.sizes {
		if size > uint64(m.most) {
			return fmt.Errorf("a key of %d bytes, of %d at most", size, m.most)
		}
	}
	return m.entries.look(func(entry uint32) (at, hash uint32, ok bool) {
		key := m.key(int(entry))
		hash = m.hash(key)
		at, found := m.find(key, hash)
		return at, hash, found == int(entry)
	})
}

// Set gives a key the value v. It gives [ErrLongKey] for a key of more than k bytes, and a
// [scope.FullError] when the key is new and n keys are in it; else nil. Cost: that of the hash, the
// copy of the key, and a few ns; no Go allocation, but for the first full.
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
	if m.used() == len(m.order) {
		if m.full == nil {
			m.full = scope.KeysFull(m.life.scope, m.Cap())
		}
		return m.full
	}
	entry = int(m.enter(at, hash, v))
	m.sizes[entry] = uint64(len(key))
	copy(m.slot(entry), key)
	return nil
}

// SetBytes is Set of a key that lies in bytes, as in a packet. It keeps a copy: the bytes are the
// caller's again when it returns.
func (m *StringMap[V]) SetBytes(key []byte, v V) error { return m.Set(text(key), v) }

// Get is the value of a key, in place, or nil when there is no such key. The pointer is good until
// the key is deleted, or Clear, and no longer than the scope is open. What is deleted is nobody's:
// its place may be that of another key afterwards. No Go allocation.
func (m *StringMap[V]) Get(key string) *V {
	if !m.life.began().alive() {
		return nil
	}
	if _, entry := m.find(key, m.hash(key)); entry >= 0 {
		return &m.values[entry]
	}
	return nil
}

// GetBytes is Get of a key that lies in bytes.
func (m *StringMap[V]) GetBytes(key []byte) *V { return m.Get(text(key)) }

// Delete takes a key and its value away. No other value moves. It is false when there is no such
// key.
func (m *StringMap[V]) Delete(key string) bool {
	if !m.life.began().alive() {
		return false
	}
	at, entry := m.find(key, m.hash(key))
	if entry < 0 {
		return false
	}
	m.leave(at, uint32(entry))
	if m.kept {
		clear(m.slot(entry))
		m.sizes[entry] = 0
	}
	return true
}

// DeleteBytes is Delete of a key that lies in bytes.
func (m *StringMap[V]) DeleteBytes(key []byte) bool { return m.Delete(text(key)) }

// Clear takes all keys and values away. Cost: O(n), in a state O(n * k).
func (m *StringMap[V]) Clear() {
	if !m.life.began().alive() {
		return
	}
	m.clear()
	if m.kept {
		clear(m.bytes)
		clear(m.sizes)
	}
}

// All ranges over keys and values, as that of a [Map]. A key is a view of the map's bytes, good
// until it is deleted, or Clear; strings.Clone gives one to keep.
func (m *StringMap[V]) All() iter.Seq2[string, *V] { return m.each }

// each is that of a Map.
func (m *StringMap[V]) each(yield func(string, *V) bool) {
	m.life.began()
	order, bytes, most := m.order, unsafe.Pointer(unsafe.SliceData(m.bytes)), uint64(m.most)
	sizes, values := m.sizes[:len(order)], m.values[:len(order)]
	for i := 0; i < len(order) && m.life.alive(); i++ {
		if order[i].rank >= m.words.used {
			if i >= int(m.words.most) {
				return
			}
			continue
		}
		key := (*byte)(unsafe.Add(bytes, uint64(i)*most)) // m.key: there is a slot for each i in order
		if !yield(unsafe.String(key, min(sizes[i], most)), &values[i]) {
			return
		}
	}
}

// text is a view of bytes. It is for a call that keeps nothing of it.
func text(bytes []byte) string { return unsafe.String(unsafe.SliceData(bytes), len(bytes)) }

// slot is the bytes for the key of an entry, key those that it has.
func (m *StringMap[V]) slot(entry int) []byte { return m.bytes[entry*m.most:][:m.most] }

func (m *StringMap[V]) key(entry int) string {
	key := m.bytes[entry*m.most:][:min(m.sizes[entry], uint64(m.most))]
	return unsafe.String(unsafe.SliceData(key), len(key))
}

func (m *StringMap[V]) hash(key string) uint32 {
	seed := &m.words.seed
	return uint32(seed.hash(seed[0], unsafe.Slice(unsafe.StringData(key), len(key))))
}

// find is where the cell of a key is, or an empty one for it, and its entry, -1 when there is none.
// It looks at each cell once, whatever is in them.
func (m *StringMap[V]) find(key string, hash uint32) (at uint32, entry int) {
	at = hash
	for x := m.index; at-hash < uint32(len(x)); at++ {
		c := *x.at(at)
		if c.entry == 0 {
			break
		}
		if entry := uint(c.entry - 1); c.hash == hash && entry < uint(len(m.sizes)) && m.key(int(entry)) == key {
			return at, int(entry)
		}
	}
	return at, -1
}

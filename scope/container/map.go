package container

import (
	"fmt"
	"iter"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/internal/lifetime"
)

// Map finds at most n values of V by keys of type K. A value doesn't move.
//
// The keys are in the order of insertion, except after a Delete. A new key takes the place of a
// deleted key, if one is free: the place that was freed last. The order doesn't depend on the
// hashes, so All visits the keys in the same order in two runs. The hashes have a random seed,
// because players may choose keys. So the map's bytes differ between runs, except in a state of
// package save: see [Map.Seed].
//
// The map takes 24 bytes, 8 * n bytes for the order, and the bytes of n keys and of n values. The
// bytes of the keys are rounded up to a multiple of 8. An index takes 8 bytes for each of its
// cells. Their number is the least power of two that is n * 4/3 or more.
type Map[K comparable, V any] struct {
	table[V]
	keys  []K // of all n entries
	parts []keyPart
}

// NewMap returns an empty map in s for up to n keys. n is at most 2^28. A full scope unwinds.
// NewMap panics if s isn't the topmost scope, if n is out of range, or if K holds an arena.String
// or arena.Slice, because == compares the offsets of these types, not their contents. Cost: O(n).
func NewMap[K comparable, V any](s scope.Scope, keys scope.Maker[K], values scope.Maker[V], n int) Map[K, V] {
	check("Map", n, nMax, "keys", declared(keys) && declared(values))
	parts := keyParts[K]()
	bytes, kept := take[Map[K, V]](s, mapSize[K, V](n)), keptIn(s)
	t, allKeys, allValues := layMap[K, V](bytes, n)
	t.begin(kept)
	if kept {
		at := func(image []byte) *Map[K, V] {
			t, allKeys, _ := layMap[K, V](image, n)
			return &Map[K, V]{table: table[V]{entries: t}, keys: allKeys, parts: parts}
		}
		look := func(image []byte) error { return at(image).look() }
		convert := func(image, old []byte, count, _ uint64) (place, func() error, error) {
			return at(image).convert(old, count)
		}
		note[Map[K, V]](s, bytes, look, convert, valuesAt("keys", bytes, allKeys), valuesAt("values", bytes, allValues))
	}
	return Map[K, V]{table[V]{life: lifeOf(s), entries: t, values: allValues, kept: kept}, allKeys, parts}
}

// NewMapOn returns an empty map for up to n keys on a heap: see [NewListOn]. It panics if n is out
// of range, or if NewMap refuses K. Cost: O(n).
func NewMapOn[K comparable, V any](a arena.Reallocator, keys scope.Maker[K], values scope.Maker[V],
	n int) (Map[K, V], bool) {
	check("Map", n, nMax, "keys", declared(keys) && declared(values))
	parts := keyParts[K]()
	bytes, life, kept := takeOn(a, mapSize[K, V](n))
	if bytes == nil {
		return Map[K, V]{}, false
	}
	t, allKeys, allValues := layMap[K, V](bytes, n)
	t.begin(kept)
	return Map[K, V]{table[V]{life: life, entries: t, values: allValues, kept: kept, on: a}, allKeys, parts}, true
}

// keyParts returns the parts of K. It panics if K doesn't compare by contents.
func keyParts[K comparable]() []keyPart {
	parts, byOffset := partsOf(reflect.TypeFor[K]())
	if byOffset {
		panic(&scope.Misuse{Text: fmt.Sprintf("a Map of keys %v: an arena.String or arena.Slice compares by offset; "+
			"use a StringMap, or an array of bytes", reflect.TypeFor[K]())})
	}
	return parts
}

func layMap[K comparable, V any](bytes []byte, n int) (entries, []K, []V) {
	return layEntries(&bytes, n), cut[K](&bytes, n), cut[V](&bytes, n)
}

func mapSize[K comparable, V any](n int) uint64 {
	return entriesSize(n) + words[K](n) + sizeOf[V](n)
}

// In returns the map's contents in a snapshot from outside: see [List.In].
func (m *Map[K, V]) In(v View) *Map[K, V] {
	life, n := m.life.began(), len(m.order)
	t, allKeys, allValues := layMap[K, V](imageOf(v, m.words, mapSize[K, V](n)), n)
	return &Map[K, V]{table[V]{life: life, entries: t, values: allValues}, allKeys, m.parts}
}

func (m *Map[K, V]) look() error {
	return m.entries.look(func(entry uint32) (at, hash uint32, ok bool) {
		k := m.keys[entry]
		hash = m.hash(&k)
		at, found := m.find(k, hash)
		return at, hash, found == int(entry)
	})
}

// Set sets the value of k to v. It returns false if k is new and the map has n keys. Set panics
// after the scope has closed, and if k isn't equal to itself, as a NaN. Cost: the hash, the copy of
// v and a few ns.
func (m *Map[K, V]) Set(k K, v V) bool {
	if !m.life.began().Alive() {
		panic(lifetime.Closed{Life: m.life.Life, What: "Set in a Map"})
	}
	if k != k {
		panic(&scope.Misuse{Text: fmt.Sprintf("Set in a Map: a %v that isn't equal to itself", reflect.TypeFor[K]())})
	}
	hash := m.hash(&k)
	at, entry := m.find(k, hash)
	if entry >= 0 {
		m.values[entry] = v
		return true
	}
	if m.used() == len(m.order) {
		return false
	}
	m.keys[m.enter(at, hash, v)] = k
	return true
}

// Get returns a pointer to the value of k, or nil if the map has no such key. The pointer is valid
// until k is deleted, the map is cleared or freed, or the scope closes. Afterwards it may lead to
// another key's value.
func (m *Map[K, V]) Get(k K) *V {
	if !m.life.began().Alive() {
		return nil
	}
	var hash uint32 // m.hash and m.find follow, without their calls
	if seed, bytes := &m.words.seed, unsafe.Pointer(&k); m.parts == nil && unsafe.Sizeof(k) == 4 {
		hash = uint32(seed.Hash4((*[4]byte)(bytes)))
	} else if m.parts == nil && unsafe.Sizeof(k) == 8 {
		hash = uint32(seed.Hash8((*[8]byte)(bytes)))
	} else {
		hash = m.hash(&k)
	}
	x, keys := m.index, m.keys
	for at := hash; at-hash < uint32(len(x)); at++ {
		c := *x.at(at)
		if c.entry == 0 {
			break
		}
		if entry := uint(c.entry - 1); c.hash == hash && entry < uint(len(keys)) && keys[entry] == k {
			return &m.values[entry]
		}
	}
	return nil
}

// Delete removes k and its value. No other value moves. It returns false if the map has no such
// key.
func (m *Map[K, V]) Delete(k K) bool {
	if !m.life.began().Alive() {
		return false
	}
	at, entry := m.find(k, m.hash(&k))
	if entry < 0 {
		return false
	}
	m.leave(at, uint32(entry))
	gone(m.kept, m.keys[entry:entry+1])
	return true
}

// Clear removes all keys and values. Cost: O(n).
func (m *Map[K, V]) Clear() {
	if m.life.began().Alive() {
		m.clear()
		gone(m.kept, m.keys)
	}
}

// All ranges over keys and values in the order of the keys. As with a Go map, the loop may set and
// delete any key. A key that is deleted before its turn is skipped. A new key that is set during
// the loop may or may not be visited, and a key that is deleted and set again counts as new. All
// other keys are visited once. The loop visits at most n keys. Cost: O(m), where m is the largest
// number of keys since the map was made or cleared.
func (m *Map[K, V]) All() iter.Seq2[K, *V] { return m.each }

// each ranges over the entries. A key doesn't move, so the loop visits each at most once.
func (m *Map[K, V]) each(yield func(K, *V) bool) {
	m.life.began()
	order := m.order
	keys, values := m.keys[:len(order)], m.values[:len(order)]
	for i := 0; i < len(order) && m.life.Alive(); i++ {
		if order[i].rank >= m.words.used {
			if i >= int(m.words.most) {
				return
			}
		} else if !yield(keys[i], &values[i]) {
			return
		}
	}
}

func (m *Map[K, V]) hash(k *K) uint32 { return hashOf(&m.words.seed, m.parts, k) }

// find returns the cell and the entry of k. For a new key find returns an empty cell and the entry
// -1. It examines each cell at most once, even if the cells were overwritten.
func (m *Map[K, V]) find(k K, hash uint32) (at uint32, entry int) {
	for i := range uint32(len(m.index)) {
		at = hash + i
		c := m.index.at(at)
		if c.entry == 0 {
			break
		}
		if entry := c.entry - 1; c.hash == hash && uint64(entry) < uint64(len(m.keys)) && m.keys[entry] == k {
			return at, int(entry)
		}
	}
	return at, -1
}

package container

import (
	"fmt"
	"hash/maphash"
	"iter"
	"reflect"
	"strings"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// Map finds at most n values of V by keys of K. They stand in the order of insertion, which Delete
// changes; it never depends on the hashes, so two runs range alike. The hashes are seeded at
// random, because players choose keys: compare what two runs range over, not their bytes.
//
// Its bytes are 8 for each cell of the index, the least power of two from n * 4/3 up, n keys,
// rounded up to 8, and n values.
type Map[K comparable, V any] struct {
	table[V]
	keys []K
}

// NewMap makes an empty map for up to n keys in s, n at most 2^28. Cost: O(n), the zeroing. A full
// scope unwinds; a scope that is not the topmost, an n out of range, and a K that has an
// arena.String or arena.Slice at any depth, which compare by offset, panic.
func NewMap[K comparable, V any](s scope.Scope, keys scope.Maker[K], values scope.Maker[V], n int) Map[K, V] {
	checkMap("Map", n, declared(keys) && declared(values))
	if key := reflect.TypeFor[K](); byOffset(key) {
		panic(&scope.Misuse{Text: fmt.Sprintf("a Map of keys %v: an arena.String or arena.Slice compares by offset; "+
			"use a StringMap, or an array of bytes", key)})
	}
	cells := cellsFor(n)
	rest := take(s, cells*cellSize+words[K](n)+sizeOf[V](n))
	index, allKeys, allValues := cut[cell](&rest, int(cells)), cut[K](&rest, n), cut[V](&rest, n)
	return Map[K, V]{table[V]{life: lifeOf(s), seed: maphash.MakeSeed(), index: index, values: allValues[:0]}, allKeys[:0]}
}

// Set gives k the value v. It is false when k is new and n keys are in it. A key that differs from
// itself, a NaN, could never be found: it panics. Cost: that of the hash and a few ns.
func (m *Map[K, V]) Set(k K, v V) bool {
	if !m.life.began().alive() {
		panic(closed{m.life, "Set in a Map"})
	}
	if k != k {
		panic(&scope.Misuse{Text: fmt.Sprintf("Set in a Map: a %v that differs from itself", reflect.TypeFor[K]())})
	}
	hash := m.hash(k)
	at, entry := m.find(k, hash)
	if entry >= 0 {
		m.values[entry] = v
		return true
	}
	if len(m.keys) == cap(m.keys) {
		return false
	}
	m.keys, m.values = append(m.keys, k), append(m.values, v)
	*m.index.at(at) = cell{hash, uint32(len(m.keys))}
	return true
}

// Get is the value of k, in place, or nil when there is no such key. The pointer is good until
// Delete, which may move any value, or Clear, and no longer than the scope is open.
func (m *Map[K, V]) Get(k K) *V {
	if !m.life.began().alive() {
		return nil
	}
	if _, entry := m.find(k, m.hash(k)); entry >= 0 {
		return &m.values[entry]
	}
	return nil
}

// Delete takes k and its value away and puts the last in their place. It is false when there is no
// such key.
func (m *Map[K, V]) Delete(k K) bool {
	if !m.life.began().alive() {
		return false
	}
	at, gap := m.find(k, m.hash(k))
	if gap < 0 {
		return false
	}
	last := len(m.keys) - 1
	m.drop(at, gap, m.hash(m.keys[last]))
	m.keys[gap] = m.keys[last]
	m.keys = m.keys[:last]
	return true
}

// Clear takes all keys and values away. Cost: O(n).
func (m *Map[K, V]) Clear() {
	if m.life.began().alive() {
		m.clear()
		m.keys = m.keys[:0]
	}
}

// All ranges over keys and values in the order of insertion, as Delete left it; also over those
// that Set adds meanwhile. Delete of the current key is fine: what took its place comes next.
func (m *Map[K, V]) All() iter.Seq2[K, *V] { return m.each }

func (m *Map[K, V]) each(yield func(K, *V) bool) {
	for i := 0; i < m.Len(); {
		key := m.keys[i]
		if !yield(key, &m.values[i]) {
			return
		}
		if i < m.Len() && m.keys[i] == key {
			i++
		}
	}
}

func (m *Map[K, V]) hash(k K) uint32 { return uint32(maphash.Comparable(m.seed, k)) }

// find is where the cell of k is, or an empty one for it, and its entry, -1 when there is none.
func (m *Map[K, V]) find(k K, hash uint32) (at uint32, entry int) {
	for at = hash; ; at++ {
		c := m.index.at(at)
		if c.entry == 0 {
			return at, -1
		}
		if entry = int(c.entry) - 1; c.hash == hash && m.keys[entry] == k {
			return at, entry
		}
	}
}

// byOffset says whether two of equal contents may differ: a t is, or has in it, an arena.String or
// an arena.Slice.
func byOffset(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return byOffset(t.Elem())
	case reflect.Struct:
		if t.PkgPath() == reflect.TypeFor[arena.String]().PkgPath() &&
			(t.Name() == "String" || strings.HasPrefix(t.Name(), "Slice[")) {
			return true
		}
		for i := range t.NumField() {
			if byOffset(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

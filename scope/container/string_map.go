package container

import (
	"errors"
	"fmt"
	"iter"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/internal/lifetime"
	"github.com/upfront-mem/upfront/scope/stack"
)

// ErrLongKey matches, with errors.Is, the error that [StringMap.Set] returns for a key of more than
// k bytes.
var ErrLongKey = errors.New("container: the key is too long")

// StringMap finds at most n values of V by keys that are strings of at most k bytes each. The map
// copies each key, so the caller's string may be in any memory. A value doesn't move. For the order
// of the keys and the seed of the hashes see [Map].
//
// The map takes 24 bytes, 8 * n bytes for the order, n * (k + 8) bytes for the keys, and the bytes
// of n values, rounded up to a multiple of 8. It also has an index, as a Map has.
type StringMap[V any] struct {
	table[V]
	allNames
	full *scope.FullError // the first full of Set
	long error            // the first ErrLongKey of Set
}

type allNames struct {
	sizes []uint64 // of each key
	bytes []byte   // a slot of most bytes for each key
	most  int
}

// NewStringMap returns an empty map in s for up to n keys of at most k bytes each. n and k are at
// most 2^28. A full scope unwinds. NewStringMap panics if s isn't the topmost scope, or if n or k
// is out of range. Cost: O(n * k), to zero the bytes.
func NewStringMap[V any](s scope.Scope, values scope.Maker[V], n, k int) StringMap[V] {
	check("StringMap", n, nMax, "keys", declared(values))
	checkKeys(k)
	bytes := take[StringMap[V]](s, stringMapSize[V](n, k))
	kept := keptIn(s)
	t, allKeys, allValues := layStringMap[V](bytes, n, k)
	t.begin(kept)
	if kept {
		at := func(image []byte) *StringMap[V] {
			t, allKeys, _ := layStringMap[V](image, n, k)
			return &StringMap[V]{table: table[V]{entries: t}, allNames: allKeys}
		}
		look := func(image []byte) error { return at(image).look() }
		convert := func(image, old []byte, count, size uint64) (place, func() error, error) {
			return at(image).convert(old, count, size)
		}
		note[StringMap[V]](s, bytes, look, convert, valuesAt("values", bytes, allValues))
	}
	return StringMap[V]{table: table[V]{life: lifeOf(s), entries: t, values: allValues, kept: kept}, allNames: allKeys}
}

// NewStringMapOn returns an empty map on a heap for up to n keys of at most k bytes each: see
// [NewListOn]. NewStringMapOn panics if n or k is out of range. Cost: O(n * k), to zero the bytes.
func NewStringMapOn[V any](a arena.Reallocator, values scope.Maker[V], n, k int) (StringMap[V], bool) {
	check("StringMap", n, nMax, "keys", declared(values))
	checkKeys(k)
	bytes, life, kept := takeOn(a, stringMapSize[V](n, k))
	if bytes == nil {
		return StringMap[V]{}, false
	}
	t, allKeys, allValues := layStringMap[V](bytes, n, k)
	t.begin(kept)
	return StringMap[V]{table: table[V]{life: life, entries: t, values: allValues, kept: kept, on: a},
		allNames: allKeys}, true
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

// In returns the map's contents in a snapshot from outside: see [List.In].
func (m *StringMap[V]) In(v View) *StringMap[V] {
	life, n := m.life.began(), len(m.order)
	image := imageOf(v, m.words, stringMapSize[V](n, m.most))
	t, allKeys, allValues := layStringMap[V](image, n, m.most)
	return &StringMap[V]{table: table[V]{life: life, entries: t, values: allValues}, allNames: allKeys}
}

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

// Set sets the value of a key to v. It returns an error that is [ErrLongKey] if the key has more
// than k bytes, and a [scope.FullError] if the key is new and the map has n keys. Set panics after
// the scope has closed. Cost: the hash, the copies of the key and v, and a few ns. Only the first
// error of each kind, for each map, allocates on the Go heap.
func (m *StringMap[V]) Set(key string, v V) error {
	if !m.life.began().Alive() {
		panic(lifetime.Closed{Life: m.life.Life, What: "Set in a StringMap"})
	}
	if len(key) > m.most {
		return m.longKey()
	}
	hash := m.hash(key)
	at, entry := m.find(key, hash)
	if entry >= 0 {
		m.values[entry] = v
		return nil
	}
	if m.used() == len(m.order) {
		if m.full == nil {
			m.full = stack.KeysFull(m.life.End, m.life.Gen, m.Cap())
		}
		return m.full
	}
	entry = int(m.enter(at, hash, v))
	m.sizes[entry] = uint64(len(key))
	copy(m.slot(entry), key)
	return nil
}

func (m *StringMap[V]) longKey() error {
	if m.long != nil {
		return m.long
	}
	where := ""
	if m.life.End != nil {
		budget, arena, name := stack.NamesOf(m.life.End, m.life.Gen)
		where = fmt.Sprintf("budget %q: %s: scope %q: ", budget, arena, name)
	}
	m.long = fmt.Errorf("%sa StringMap has keys of at most %d bytes; make it with a larger k, or refuse the key: %w",
		where, m.most, ErrLongKey)
	return m.long
}

// SetBytes is [StringMap.Set] for a key that is a slice of bytes, such as a part of a packet.
// SetBytes doesn't keep the slice.
func (m *StringMap[V]) SetBytes(key []byte, v V) error { return m.Set(text(key), v) }

// Get returns a pointer to the value of a key, or nil if the map has no such key. The pointer is
// valid until the key is deleted, the map is cleared or freed, or the scope closes. Afterwards it
// may lead to another key's value. No Go allocation.
func (m *StringMap[V]) Get(key string) *V {
	if !m.life.began().Alive() {
		return nil
	}
	if _, entry := m.find(key, m.hash(key)); entry >= 0 {
		return &m.values[entry]
	}
	return nil
}

// GetBytes is [StringMap.Get] for a key that is a slice of bytes.
func (m *StringMap[V]) GetBytes(key []byte) *V { return m.Get(text(key)) }

// Delete removes a key and its value. No other value moves. It returns false if the map has no such
// key.
func (m *StringMap[V]) Delete(key string) bool {
	if !m.life.began().Alive() {
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

// DeleteBytes is [StringMap.Delete] for a key that is a slice of bytes.
func (m *StringMap[V]) DeleteBytes(key []byte) bool { return m.Delete(text(key)) }

// Clear removes all keys and values. Cost: O(n), or O(n * k) in a state of package save.
func (m *StringMap[V]) Clear() {
	if !m.life.began().Alive() {
		return
	}
	m.clear()
	if m.kept {
		clear(m.bytes)
		clear(m.sizes)
	}
}

// All ranges over keys and values: see [Map.All]. Each key is a view of the map's bytes. The view
// is valid until the key is deleted, the map is cleared or freed, or the scope closes.
// strings.Clone copies a key.
func (m *StringMap[V]) All() iter.Seq2[string, *V] { return m.each }

func (m *StringMap[V]) each(yield func(string, *V) bool) {
	m.life.began()
	order, bytes, most := m.order, unsafe.Pointer(unsafe.SliceData(m.bytes)), uint64(m.most)
	sizes, values := m.sizes[:len(order)], m.values[:len(order)]
	for i := 0; i < len(order) && m.life.Alive(); i++ {
		if order[i].rank >= m.words.used {
			if i >= int(m.words.most) {
				return
			}
			continue
		}
		// m.key: i is in range, so its slot also is
		key := (*byte)(unsafe.Add(bytes, uint64(i)*most))
		if !yield(unsafe.String(key, min(sizes[i], most)), &values[i]) {
			return
		}
	}
}

// text returns a view of bytes, for a call that doesn't keep it.
func text(bytes []byte) string { return unsafe.String(unsafe.SliceData(bytes), len(bytes)) }

// slot returns the bytes for an entry's key; key returns the key.
func (m *StringMap[V]) slot(entry int) []byte { return m.bytes[entry*m.most:][:m.most] }

func (m *StringMap[V]) key(entry int) string {
	key := m.bytes[entry*m.most:][:min(m.sizes[entry], uint64(m.most))]
	return unsafe.String(unsafe.SliceData(key), len(key))
}

func (m *StringMap[V]) hash(key string) uint32 {
	seed := &m.words.seed
	return uint32(seed.Hash(seed[0], unsafe.Slice(unsafe.StringData(key), len(key))))
}

// find returns the cell and the entry of a key. For a new key find returns an empty cell and the
// entry -1. It looks at each cell at most once, even if the cells were overwritten.
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

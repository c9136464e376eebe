package container

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"
)

// A container of a state converts the words of a container of the same kind in a file of an older
// program: see stack.Tenant. Values keep their places, except in a deque: its first value gets
// place 0, as the ring may be larger. A map gets the keys, the order and the free entries of the
// file, and a new index, since its keys may be of another type.

// place returns the place of a converted value, and whether the old value is in use.
type place = func(i uint64) (to uint64, live bool)

var errCut = errors.New("its words don't fit in its bytes")

func oldWord(old []byte, i int) uint64 { return binary.LittleEndian.Uint64(old[wordSize*i:]) }

func (l listed[T]) convert(old []byte, count uint64) (place, func() error, error) {
	if uint64(len(old)) < wordSize {
		return nil, nil, errCut
	}
	used := oldWord(old, 0)
	if n := uint64(len(l.items)); used > count || used > n {
		return nil, nil, fmt.Errorf("%d values, of %d at most in the file and %d here", used, count, n)
	}
	*l.used = used
	return func(i uint64) (uint64, bool) { return i, i < used }, nil, nil
}

func (q queued[T]) convert(old []byte, count uint64) (place, func() error, error) {
	if uint64(len(old)) < 2*wordSize {
		return nil, nil, errCut
	}
	front, used := oldWord(old, 0), oldWord(old, 1)
	if n := uint64(len(q.ring)); used > count || used > n || front >= max(count, 1) {
		return nil, nil, fmt.Errorf("%d values from place %d on, in a ring of %d, and of %d here", used, front, count,
			n)
	}
	*q.ends = ends{0, used}
	return func(i uint64) (uint64, bool) {
		at := i - front
		if i < front {
			at += count
		}
		return at, at < used
	}, nil, nil
}

// convert converts the order of a map of count entries. It keeps the seed of the file, as a
// snapshot does.
func (t entries) convert(old []byte, count uint64) (place, error) {
	n := uint64(len(t.order))
	if count > n || uint64(len(old)) < entriesSize(int(count)) {
		return nil, errCut
	}
	const seedSize = int(unsafe.Sizeof(seed{}))
	used, most := binary.LittleEndian.Uint32(old[seedSize:]), binary.LittleEndian.Uint32(old[seedSize+4:])
	if uint64(used) > count || most < used || uint64(most) > count {
		return nil, fmt.Errorf("%d keys, and a peak of %d, of %d at most", used, most, count)
	}
	for i := range t.words.seed {
		t.words.seed[i] = oldWord(old, i)
	}
	t.letGo()
	t.words.used, t.words.most = used, most
	order := old[words[tableWords](1)+cellsFor(int(count))*cellSize:]
	for i := range count {
		t.order[i] = standing{binary.LittleEndian.Uint32(order[8*i:]), binary.LittleEndian.Uint32(order[8*i+4:])}
	}
	for rank := range uint32(count) {
		if entry := t.order[rank].entry; uint64(entry) >= count || t.order[entry].rank != rank {
			return nil, fmt.Errorf("entry %d of %d is out of range, or twice in the order", entry, count)
		}
	}
	clear(t.index)
	return func(i uint64) (uint64, bool) { return i, t.order[i].rank < used }, nil
}

// reindex fills the empty index from the hashes of the entries.
func (t entries) reindex(hash func(entry uint32) uint32) error {
	steps := max(lookMost, lookEach*uint64(len(t.order)))
	for rank := range t.words.used {
		entry := t.order[rank].entry
		at := hash(entry)
		is := cell{at, entry + 1}
		for t.index.at(at).entry != 0 {
			if at++; steps == 0 {
				return errors.New("keys that collide too often; play with another Seed")
			}
			steps--
		}
		*t.index.at(at) = is
	}
	return nil
}

func (m *Map[K, V]) convert(old []byte, count uint64) (place, func() error, error) {
	place, err := m.entries.convert(old, count)
	return place, func() error {
		return m.reindex(func(entry uint32) uint32 { return m.hash(&m.keys[entry]) })
	}, err
}

// convert converts the words and the keys of a map with values of size bytes.
func (m *StringMap[V]) convert(old []byte, count, size uint64) (place, func() error, error) {
	place, err := m.entries.convert(old, count)
	if err != nil {
		return nil, nil, err
	}
	rest := old[entriesSize(int(count)):]
	clear(m.sizes)
	clear(m.bytes)
	if count == 0 {
		return place, nil, nil
	}
	if size > uint64(len(rest))/count {
		return nil, nil, errCut
	}
	keys := count*wordSize + (count*size+wordSize-1)&^(wordSize-1)
	if keys > uint64(len(rest)) {
		return nil, nil, errCut
	}
	sizes, rest := rest[:count*wordSize], rest[keys:]
	most := uint64(len(rest)) / count // the file's k
	for i := range count {
		if _, live := place(i); !live {
			continue
		}
		n := oldWord(sizes, int(i))
		if n > most || n > uint64(m.most) {
			return nil, nil, fmt.Errorf("a key of %d bytes, of %d at most in the file, and %d here", n, most, m.most)
		}
		m.sizes[i] = n
		copy(m.slot(int(i)), rest[i*most:][:n])
	}
	return place, func() error {
		return m.reindex(func(entry uint32) uint32 { return m.hash(m.key(int(entry))) })
	}, nil
}

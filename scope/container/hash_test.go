package container

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/internal/wyhash"
)

// TestHashIsForEver: a state's bytes contain hashes, so hashes are the same in each build, on each
// machine and in each version of this module.
func TestHashIsForEver(t *testing.T) {
	s, k := wyhash.Of(7), int32(5)
	assert.Equal(t, uint32(0x4154b58), hashOf(&s, nil, &k))
}

type (
	padded struct {
		A uint8
		B uint32
		C uint8
	}
	blank  struct{ _, A, _ uint16 }
	blanks struct{ _ uint64 }
	floats struct {
		A  uint8
		F  float32
		D  float64
		Z  complex64
		ZZ complex128
	}
	nested struct {
		A   uint16
		All [3]padded
		B   [2]uint8
		C   uint16
		F   [2][2]float32
	}
)

// TestHashOfParts: the hash covers the parts that == compares, and no others.
func TestHashOfParts(t *testing.T) {
	assert.Nil(t, keyParts[uint8]())
	assert.Nil(t, keyParts[[3]struct{ A, B uint16 }]())
	assert.Nil(t, keyParts[struct{}]())
	assert.Nil(t, keyParts[[0]float64]())
	assert.Equal(t, []keyPart{{at: 0, size: 1}, {at: 4, size: 5}}, keyParts[padded]())
	assert.Equal(t, []keyPart{{at: 2, size: 2}}, keyParts[blank]())
	assert.Equal(t, []keyPart{}, keyParts[blanks]())
	zero := math.Copysign(0, -1)
	sameHash(t, padded{1, 2, 3}, padded{1, 2, 4})
	sameHash(t, blank{A: 1}, blank{A: 2})
	sameHash(t, blanks{}, blanks{})
	sameHash(t, zero, 1)
	sameHash(t, float32(zero), 1)
	sameHash(t, floats{F: float32(zero), D: zero, Z: complex(0, float32(zero)), ZZ: complex(zero, 0)},
		floats{ZZ: complex(0, 1)})
	sameHash(t, nested{All: [3]padded{1: {C: 2}}, F: [2][2]float32{1: {1: float32(zero)}}},
		nested{All: [3]padded{2: {C: 2}}})
	sameHash(t, nested{F: [2][2]float32{1: {1: 2}}}, nested{F: [2][2]float32{0: {1: 2}}})
}

// sameHash hashes k in bytes with all kinds of padding: k has one hash, and another key a different
// hash.
func sameHash[K comparable](t *testing.T, k, another K) {
	s, parts := wyhash.Of(1), keyParts[K]()
	hashes := map[uint32]bool{}
	for _, fill := range []byte{0, 0xff} {
		raw := make([]uint64, (unsafe.Sizeof(k)+7)/8)
		in := unsafe.Slice((*byte)(unsafe.Pointer(&raw[0])), unsafe.Sizeof(k))
		for i := range in {
			in[i] = fill
		}
		for _, p := range flat(parts, reflect.TypeFor[K](), 0) {
			copy(in[p.at:p.at+p.size], unsafe.Slice((*byte)(unsafe.Pointer(&k)), unsafe.Sizeof(k))[p.at:])
		}
		filled := (*K)(unsafe.Pointer(&raw[0]))
		require.True(t, *filled == k)
		hashes[hashOf(&s, parts, filled)] = true
	}
	var zero K
	if k == zero { // negative zeros
		hashes[hashOf(&s, parts, &zero)] = true
	}
	assert.Len(t, hashes, 1, "%T", k)
	if k != another {
		assert.False(t, hashes[hashOf(&s, parts, &another)], "%T", k)
	}
}

func flat(parts []keyPart, t reflect.Type, at uintptr) (list []keyPart) {
	if parts == nil {
		return []keyPart{{at: at, size: t.Size()}}
	}
	for _, p := range parts {
		if p.of == nil {
			list = append(list, keyPart{at: at + p.at, size: p.size})
		}
		for i := range p.count {
			list = append(list, flat(p.of, nil, at+p.at+i*p.size)...)
		}
	}
	return list
}

// TestForgedWords: after any overwrite of its words and index, each method of a container ends, and
// stays in its bytes.
func TestForgedWords(t *testing.T) {
	b := budgettest.Open(t, budget.Plan{Name: "test", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
		Scratch: budget.ScratchPlan{Workers: 1, Size: budget.MiB}})
	s := b.Scratch(0, 0).Open("a")
	ids := scope.Plain[int32]()
	const n = 5
	list, m, names := NewList(s, ids, n), NewMap(s, ids, ids, n), NewStringMap(s, ids, n, 4)
	fill := func(of index, entry uint32) {
		for i := range of {
			of[i].entry = entry
		}
	}
	list.Push(1)
	*list.used = math.MaxUint64
	assert.Equal(t, []int{n, n}, []int{list.Len(), len(list.Slice())})
	assert.False(t, list.Push(2))
	for _, entry := range []uint32{1, n, n + 1, math.MaxUint32} {
		m.Clear()
		names.Clear()
		for i := range int32(2) {
			m.Set(i, i)
			require.NoError(t, names.Set(fmt.Sprint(i), i))
		}
		fill(m.index, entry)
		fill(names.index, entry)
		m.words.used, names.words.used = 2, 2
		m.Get(1)
		names.Get("1")
		m.Set(7, 7)
		_ = names.Set("7", 7)
		m.Delete(1)
		names.Delete("1")
		assert.Nil(t, m.Get(100))
		assert.Nil(t, names.Get("100"))
		m.words.used, names.words.used = math.MaxUint32, math.MaxUint32
		assert.Equal(t, []int{n, n}, []int{m.Len(), names.Len()})
		assert.False(t, m.Set(8, 8))
		assert.ErrorIs(t, names.Set("8", 8), scope.ErrFull)
		for i := range names.sizes {
			names.sizes[i] = math.MaxUint64
		}
		for k := range names.All() {
			assert.Len(t, k, 4)
		}
	}
	require.NoError(t, s.Close())
}

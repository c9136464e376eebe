package container

import (
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"sync"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// The hash of a key is the same in every process and on every machine that has the same seed. It is
// wyhash (Wang Yi, github.com/wangyi-fudan/wyhash, in the public domain) in the form that Go's
// runtime has for the keys of maps where a processor has no instructions for AES
// (runtime/hash64.go), without that one's loop for keys of more than 48 bytes. The seed takes the
// place of its secrets: who doesn't know it can't choose keys that collide.
type seed [2]uint64

// randomSeed is one that nobody knows.
func randomSeed() seed { return seed{rand.Uint64(), rand.Uint64()} }

// seedOf is that of a number: two words of splitmix64 (Sebastiano Vigna, prng.di.unimi.it).
func seedOf(number uint64) (s seed) {
	for i := range s {
		number += 0x9e3779b97f4a7c15
		z := (number ^ number>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		s[i] = z ^ z>>31
	}
	return s
}

const m5 = 0x1d8e4e27c47d124f // of wyhash

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// hash is that of bytes; h is the seed's first word, or the hash of bytes before them.
func (s *seed) hash(h uint64, key []byte) uint64 {
	var a, b uint64
	n := len(key)
	switch {
	case n == 0:
	case n < 4:
		a = uint64(key[0]) | uint64(key[n>>1])<<8 | uint64(key[n-1])<<16
	case n < 8:
		a, b = uint64(binary.LittleEndian.Uint32(key)), uint64(binary.LittleEndian.Uint32(key[n-4:]))
	default:
		for rest := key; len(rest) > 16; rest = rest[16:] {
			h = mix(binary.LittleEndian.Uint64(rest)^s[1], binary.LittleEndian.Uint64(rest[8:])^h)
		}
		tail := key[max(n-16, 0):] // overlaps what came before
		a, b = binary.LittleEndian.Uint64(tail), binary.LittleEndian.Uint64(tail[len(tail)-8:])
	}
	return mix(m5^uint64(n), mix(a^s[1], b^h))
}

// hash4 and hash8 are hash of a key of 4 and of 8 bytes, for the inliner.
func (s *seed) hash4(key *[4]byte) uint64 {
	a := uint64(binary.LittleEndian.Uint32(key[:]))
	return mix(m5^4, mix(a^s[1], a^s[0]))
}

func (s *seed) hash8(key *[8]byte) uint64 {
	a := binary.LittleEndian.Uint64(key[:])
	return mix(m5^8, mix(a^s[1], a^s[0]))
}

// hashOf is the hash of a key of a type with such parts: of all its bytes, if there are none.
func hashOf[K comparable](s *seed, parts []keyPart, k *K) uint32 {
	if parts == nil {
		return uint32(s.hash(s[0], unsafe.Slice((*byte)(unsafe.Pointer(k)), unsafe.Sizeof(*k))))
	}
	return uint32(s.hashParts(s[0], parts, unsafe.Pointer(k)))
}

func (s *seed) hashParts(h uint64, parts []keyPart, key unsafe.Pointer) uint64 {
	for i := range parts {
		p := &parts[i]
		at := unsafe.Add(key, p.at)
		switch {
		case p.of != nil:
			for k := range p.count {
				h = s.hashParts(h, p.of, unsafe.Add(at, k*p.size))
			}
		case p.float:
			h = s.hashFloat(h, at, p.size)
		default:
			h = s.hash(h, unsafe.Slice((*byte)(at), p.size))
		}
	}
	return h
}

// hashFloat has one hash for the two zeros, which are equal.
func (s *seed) hashFloat(h uint64, at unsafe.Pointer, size uintptr) uint64 {
	var x float64
	if size == 4 {
		x = float64(*(*float32)(at))
	} else {
		x = *(*float64)(at)
	}
	var key [8]byte
	if x != 0 {
		binary.LittleEndian.PutUint64(key[:], math.Float64bits(x))
	}
	return s.hash(h, key[:])
}

// keyPart is a part of a key that == looks at: bytes, a float, or an array of elements with parts.
type keyPart struct {
	at, size uintptr // size is that of an element of an array
	float    bool
	of       []keyPart
	count    uintptr
}

var keyParts sync.Map // by reflect.Type: a []keyPart

// partsOf is what == looks at in a key of type t; nil: at all its bytes. It looks at a type once.
// The race detector would take keyParts for synchronization of all who make maps, which hides their
// races: it gets a look each time.
func partsOf(t reflect.Type) []keyPart {
	if arena_c.Race {
		return lookAt(t)
	}
	if known, ok := keyParts.Load(t); ok {
		return *known.(*[]keyPart)
	}
	parts := lookAt(t)
	keyParts.Store(t, &parts)
	return parts
}

func lookAt(t reflect.Type) []keyPart {
	parts := appendParts([]keyPart{}, t, 0)
	if t.Size() == 0 || len(parts) == 1 && parts[0].isBytes() && parts[0].size == t.Size() {
		return nil
	}
	return parts
}

func (p *keyPart) isBytes() bool { return !p.float && p.of == nil }

func appendParts(parts []keyPart, t reflect.Type, at uintptr) []keyPart {
	switch t.Kind() {
	case reflect.Float32, reflect.Float64:
		return append(parts, keyPart{at: at, size: t.Size(), float: true})
	case reflect.Complex64, reflect.Complex128:
		half := t.Size() / 2
		return append(parts, keyPart{at: at, size: half, float: true},
			keyPart{at: at + half, size: half, float: true})
	case reflect.Array:
		if of := partsOf(t.Elem()); of != nil {
			return append(parts, keyPart{at: at, size: t.Elem().Size(), of: of, count: uintptr(t.Len())})
		}
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.Name != "_" {
				parts = appendParts(parts, f.Type, at+f.Offset)
			}
		}
		return parts
	}
	if t.Size() == 0 {
		return parts
	}
	if last := len(parts) - 1; last >= 0 && parts[last].isBytes() && parts[last].at+parts[last].size == at {
		parts[last].size += t.Size()
		return parts
	}
	return append(parts, keyPart{at: at, size: t.Size()})
}

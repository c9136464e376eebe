package container

import (
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena/plain"
	"github.com/upfront-mem/upfront/arena_c"
)

// A seed makes the hash of a key the same in every process and on every machine. The hash is wyhash
// (Wang Yi, github.com/wangyi-fudan/wyhash, in the public domain). It has the form that Go's
// runtime uses on processors without AES instructions (runtime/hash64.go), without the loop for
// keys of more than 48 bytes. The seed replaces wyhash's secrets: an attacker without the seed
// can't choose keys that collide.
type seed [2]uint64

func randomSeed() seed { return seed{rand.Uint64(), rand.Uint64()} }

// seedOf returns the seed of a number: two words of splitmix64 (Sebastiano Vigna,
// prng.di.unimi.it).
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

// hash returns the hash of key. h is the seed's first word, or the hash of the parts before key.
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
		tail := key[max(n-16, 0):] // overlaps the bytes before
		a, b = binary.LittleEndian.Uint64(tail), binary.LittleEndian.Uint64(tail[len(tail)-8:])
	}
	return mix(m5^uint64(n), mix(a^s[1], b^h))
}

// hash4 and hash8 are hash for keys of 4 and of 8 bytes, for the inliner.
func (s *seed) hash4(key *[4]byte) uint64 {
	a := uint64(binary.LittleEndian.Uint32(key[:]))
	return mix(m5^4, mix(a^s[1], a^s[0]))
}

func (s *seed) hash8(key *[8]byte) uint64 {
	a := binary.LittleEndian.Uint64(key[:])
	return mix(m5^8, mix(a^s[1], a^s[0]))
}

// hashOf returns the hash of a key with these parts; nil parts are all its bytes.
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

// hashFloat returns one hash for the two zeros, which are equal.
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

// keyPart is a part of a key that == compares: bytes, a float, or an array whose elements have
// parts.
type keyPart struct {
	at, size uintptr // size of an array's element
	float    bool
	of       []keyPart
	count    uintptr
}

var knownKeys sync.Map // by reflect.Type: a *keyType

type keyType struct {
	parts []keyPart // compared by ==; nil: all bytes
	// the type holds an arena.String or arena.Slice, which == doesn't compare by contents
	byOffset bool
}

// partsOf returns the keyType of t, which it computes once. In race builds it computes the keyType
// each time, because the detector would take knownKeys for synchronization between all makers of
// maps.
func partsOf(t reflect.Type) (parts []keyPart, byOffset bool) {
	if !arena_c.Race {
		if known, ok := knownKeys.Load(t); ok {
			k := known.(*keyType)
			return k.parts, k.byOffset
		}
	}
	k := keyType{parts: []keyPart{}}
	plain.Walk(plain.Go(t), k.look)
	if t.Size() == 0 || len(k.parts) == 1 && k.parts[0].isBytes() && k.parts[0].size == t.Size() {
		k.parts = nil
	}
	if !arena_c.Race {
		knownKeys.Store(t, &k)
	}
	return k.parts, k.byOffset
}

func (p *keyPart) isBytes() bool { return !p.float && p.of == nil }

// look adds a part of a key during a walk, and reports whether to walk into it. == compares neither
// padding nor blank fields.
func (k *keyType) look(p plain.Part) (into bool) {
	if p.Kind == reflect.Invalid || p.Name == "_" {
		return false
	}
	part := keyPart{at: p.Offset, size: p.Size}
	switch p.Kind {
	case reflect.Float32, reflect.Float64:
		part.float = true
	case reflect.Complex64, reflect.Complex128:
		part.float, part.size = true, p.Size/2
		k.add(part)
		part.at += part.size
	case reflect.Array:
		of, byOffset := partsOf(p.Go().Elem())
		k.byOffset = k.byOffset || byOffset
		if of != nil {
			part = keyPart{at: p.Offset, size: p.Type.Elem().Size(), of: of, count: uintptr(p.Type.Len())}
		}
	case reflect.Struct:
		k.byOffset = k.byOffset || p.Type.PkgPath() == reflect.TypeFor[arena.String]().PkgPath() &&
			(p.Type.Name() == "String" || strings.HasPrefix(p.Type.Name(), "Slice["))
		return true
	}
	k.add(part)
	return false
}

// add appends a part, and joins adjacent bytes.
func (k *keyType) add(p keyPart) {
	if last := len(k.parts) - 1; last >= 0 && p.isBytes() && k.parts[last].isBytes() && k.parts[last].at+k.parts[last].size == p.at {
		k.parts[last].size += p.size
	} else if p.size != 0 || p.of != nil {
		k.parts = append(k.parts, p)
	}
}

package container

import (
	"encoding/binary"
	"math"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena/plain"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/internal/wyhash"
)

type seed = wyhash.Seed

// hashOf returns the hash of a key with these parts; nil parts are all its bytes.
func hashOf[K comparable](s *seed, parts []keyPart, k *K) uint32 {
	if parts == nil {
		return uint32(s.Hash(s[0], unsafe.Slice((*byte)(unsafe.Pointer(k)), unsafe.Sizeof(*k))))
	}
	return uint32(hashParts(s, s[0], parts, unsafe.Pointer(k)))
}

func hashParts(s *seed, h uint64, parts []keyPart, key unsafe.Pointer) uint64 {
	for i := range parts {
		p := &parts[i]
		at := unsafe.Add(key, p.at)
		switch {
		case p.of != nil:
			for k := range p.count {
				h = hashParts(s, h, p.of, unsafe.Add(at, k*p.size))
			}
		case p.float:
			h = hashFloat(s, h, at, p.size)
		default:
			h = s.Hash(h, unsafe.Slice((*byte)(at), p.size))
		}
	}
	return h
}

// hashFloat returns one hash for the two zeros, which are equal.
func hashFloat(s *seed, h uint64, at unsafe.Pointer, size uintptr) uint64 {
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
	return s.Hash(h, key[:])
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
	if last := len(k.parts) - 1; last >= 0 && p.isBytes() && k.parts[last].isBytes() &&
		k.parts[last].at+k.parts[last].size == p.at {
		k.parts[last].size += p.size
	} else if p.size != 0 || p.of != nil {
		k.parts = append(k.parts, p)
	}
}

// Package wyhash hashes the keys of containers and caches. The hash is wyhash (Wang Yi,
// github.com/wangyi-fudan/wyhash, in the public domain). It has the form that Go's runtime uses on
// processors without AES instructions (runtime/hash64.go), without the loop for keys of more than
// 48 bytes.
package wyhash

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// A Seed makes the hash of a key the same in every process and on every machine. It replaces
// wyhash's secrets: an attacker without the seed can't choose keys that collide.
type Seed [2]uint64

// Random returns a seed of random numbers.
func Random() Seed { return Seed{rand.Uint64(), rand.Uint64()} }

// Of returns the seed of a number: two words of splitmix64 (Sebastiano Vigna, prng.di.unimi.it).
func Of(number uint64) (s Seed) {
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

// Hash returns the hash of key. h is the seed's first word, or the hash of the parts before key.
func (s *Seed) Hash(h uint64, key []byte) uint64 {
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

// Hash4 is Hash with the seed's first word for a key of 4 bytes. It can be inlined.
func (s *Seed) Hash4(key *[4]byte) uint64 {
	a := uint64(binary.LittleEndian.Uint32(key[:]))
	return mix(m5^4, mix(a^s[1], a^s[0]))
}

// Hash8 is Hash with the seed's first word for a key of 8 bytes. It can be inlined.
func (s *Seed) Hash8(key *[8]byte) uint64 {
	a := binary.LittleEndian.Uint64(key[:])
	return mix(m5^8, mix(a^s[1], a^s[0]))
}

// Package work has the parts that all versions of a program share: the input, which is the same
// each time, the rules of the program's world, the checksum, and the meter. Its types allocate only
// when they are made.
package work

import (
	"encoding/binary"
	"math/bits"
)

// Sum is a checksum in which the order counts. Its zero value is empty.
type Sum uint64

// Add adds a number.
func (s *Sum) Add(v uint64) {
	*s = Sum(bits.RotateLeft64((uint64(*s)^v)*0x9e3779b97f4a7c15, 29))
}

// Bytes adds the length and the bytes of a text.
func (s *Sum) Bytes(b []byte) {
	s.Add(uint64(len(b)))
	for ; len(b) >= 8; b = b[8:] {
		s.Add(binary.LittleEndian.Uint64(b))
	}
	if len(b) > 0 {
		s.Add(tail(b))
	}
}

// tail returns fewer than eight bytes as a number.
func tail(b []byte) (v uint64) {
	for i, c := range b {
		v |= uint64(c) << (8 * i)
	}
	return v
}

// Mix returns a number that looks random, and depends only on v.
func Mix(v uint64) uint64 {
	v += 0x9e3779b97f4a7c15
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// dice is a sequence of numbers that look random.
type dice uint64

func (d *dice) next() uint64 {
	*d++
	return Mix(uint64(*d))
}

// below returns a number from 0 to n-1.
func (d *dice) below(n int) int {
	high, _ := bits.Mul64(d.next(), uint64(n))
	return int(high)
}

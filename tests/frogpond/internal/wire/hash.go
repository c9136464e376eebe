package wire

import "hash/crc32"

// Hash returns the hash by which a client checks its view: the CRC-32 (IEEE) of
//
//	epoch u8, zeros 3, tick u32, the 24 bytes of self,
//	then for each thing: kind u8, number u16, heading u8, x i16, y i16
//
// Each part is a multiple of eight bytes, so Hash computes from the fields, eight bytes at a time.
// Package crc32 would need the bytes on the Go heap.
func (v *View) Hash() uint32 {
	s := &v.Self
	c := ^uint32(0)
	c = hashWord(c, uint64(v.Epoch)|uint64(v.Tick)<<32)
	c = hashWord(c, uint64(uint32(s.X))|uint64(uint32(s.Y))<<32)
	c = hashWord(c, uint64(s.Heading)|uint64(uint16(s.Health))<<16|uint64(s.Caught)<<32)
	c = hashWord(c, uint64(s.Deaths)|uint64(s.Exits)<<16|uint64(s.Keys)<<32|uint64(s.Frogs)<<48)
	shown := v.Shown()
	for i := range shown {
		t := &shown[i]
		c = hashWord(c, uint64(t.Kind)|uint64(t.Number)<<8|uint64(t.Heading)<<24|
			uint64(uint16(t.X))<<32|uint64(uint16(t.Y))<<48)
	}
	return ^c
}

// hashTables are the effects of a byte on the CRC, by the number of bytes that follow it ("slicing
// by 8").
var hashTables = func() (t [8][256]uint32) {
	t[0] = *crc32.IEEETable
	for i := 1; i < len(t); i++ {
		for b, c := range t[i-1] {
			t[i][b] = t[0][c&0xff] ^ c>>8
		}
	}
	return t
}()

// hashWord adds eight bytes to a CRC.
func hashWord(c uint32, w uint64) uint32 {
	t := &hashTables
	w ^= uint64(c)
	return t[7][w&0xff] ^ t[6][w>>8&0xff] ^ t[5][w>>16&0xff] ^ t[4][w>>24&0xff] ^
		t[3][w>>32&0xff] ^ t[2][w>>40&0xff] ^ t[1][w>>48&0xff] ^ t[0][w>>56]
}

package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func demoOf(ticks uint64) *DemoHead {
	return &DemoHead{Players: 2, Seed: 0x1112131415161718, Map: [8]byte{'E', '1', 'M', '1'},
		MapSum: 0x2122232425262728, Ticks: ticks}
}

func demo(t testing.TB) []byte {
	var file bytes.Buffer
	require.NoError(t, WriteDemo(&file, demoOf(3), file3()))
	return file.Bytes()
}

func file3() []byte { return file(7, 3*2*inputSize) }

func TestDemo(t *testing.T) {
	for _, room := range []int{0, 1, 3, 9} { // room for that many ticks, and for a byte more
		var got DemoHead
		read, err := ReadDemo(bytes.NewReader(demo(t)), make([]byte, room*2*inputSize+1),
			func(h *DemoHead) error { got = *h; return nil })
		require.NoError(t, err)
		assert.Equal(t, *demoOf(3), got)
		assert.Equal(t, file3()[:min(room, 3)*2*inputSize], read)
	}
	no := errors.New("another game's")
	_, err := ReadDemo(bytes.NewReader(demo(t)), nil, func(*DemoHead) error { return no })
	assert.Equal(t, no, err)
}

// Damage before the last tick to play is an error that names the byte.
func TestDamagedDemo(t *testing.T) {
	data := demo(t)
	all := func(*DemoHead) error { return nil }
	for n := range len(data) {
		_, err := ReadDemo(bytes.NewReader(data[:n]), make([]byte, 99), all)
		require.ErrorContains(t, err, "the file ends within ", "%d bytes", n)
	}
	for bit := range 8 * demoHeader {
		data[bit/8] ^= 1 << (bit % 8)
		_, err := ReadDemo(bytes.NewReader(data), make([]byte, 99), all)
		require.ErrorContains(t, err, "byte ", "bit %d", bit)
		data[bit/8] ^= 1 << (bit % 8)
	}
	for want, change := range map[string]func(head []byte){
		"byte 8: it is of version 2; this program reads 1": func(head []byte) { head[8] = 2 },
		"byte 12: it has no players":                       func(head []byte) { head[12] = 0 },
		"byte 48: unused bytes are not zero":               func(head []byte) { head[59] = 1 },
	} {
		changed := bytes.Clone(data)
		change(changed)
		putSum(changed[:demoHeader])
		_, err := ReadDemo(bytes.NewReader(changed), nil, all)
		assert.EqualError(t, err, want)
	}
	binary.LittleEndian.PutUint64(data[40:], 1<<63)
	putSum(data[:demoHeader])
	_, err := ReadDemo(bytes.NewReader(data), make([]byte, 4*2*inputSize), all)
	assert.EqualError(t, err, "byte 136: the file ends within a tick, 3 of 9223372036854775808: unexpected EOF")
}

package arena_test

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
)

type text16 = arena.Inline[[16]byte]

// TestInline: a text that fits is kept to the byte, and one that doesn't changes nothing. Two
// Inlines are equal when their texts are.
func TestInline(t *testing.T) {
	assert.NoError(t, arena.CheckPlain(reflect.TypeFor[text16]()))
	assert.EqualValues(t, 16, unsafe.Sizeof(text16{}))
	assert.EqualValues(t, 1, unsafe.Alignof(text16{}))
	seen := map[text16]string{}
	for _, text := range []string{"", "a", "ada", "Zoë", "\xff\xfe", "a\x00b", "\x00a", strings.Repeat("x", 15),
		strings.Repeat("x", 16)} {
		var x text16
		for _, before := range []string{"", "a longer text!!!", "b"} { // texts to overwrite
			require.True(t, x.Set(before))
			require.True(t, x.Set(text))
			assert.Equal(t, text, x.String())
			assert.Equal(t, []byte(text), append([]byte{}, x.Bytes()...))
			assert.Equal(t, len(text), cap(x.Bytes()))
			seen[x] = text
			packet := []byte(text)
			require.True(t, x.Set(before) && x.SetBytes(packet))
			for i := range packet {
				packet[i] = '?' // the next packet
			}
			assert.Equal(t, text, seen[x], "SetBytes made the same Inline, and keeps nothing of its bytes")
		}
		was := x
		for _, bad := range []string{strings.Repeat("y", 17), strings.Repeat("y", 1000), "\x00", "a\x00",
			strings.Repeat("y", 15) + "\x00"} {
			assert.False(t, x.Set(bad), "%q", bad)
			assert.False(t, x.SetBytes([]byte(bad)), "%q", bad)
			assert.Equal(t, was, x)
		}
	}
	assert.Len(t, seen, 9)
	for x, text := range seen {
		assert.Equal(t, text, x.String())
	}
	var a, b arena.Inline[[256]byte]
	packet := []byte("frog!")
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		a.Set(b.String())
		a.SetBytes(b.Bytes())
		b.SetBytes(packet[:4])
	}))
	assert.True(t, a == b && a.Set(a.String()) && a.String() == "frog", "of itself, too")
	assert.True(t, a.SetBytes(a.Bytes()[1:]) && a.String() == "rog", "of its own bytes, too")
	assert.True(t, a.SetBytes(nil) && a == arena.Inline[[256]byte]{})
}

func TestInlineEnds(t *testing.T) {
	endsOf[[4]byte](t)
	endsOf[[8]byte](t)
	endsOf[[12]byte](t)
	endsOf[[16]byte](t)
	endsOf[[24]byte](t)
	endsOf[[32]byte](t)
	endsOf[[48]byte](t)
	endsOf[[64]byte](t)
	endsOf[[96]byte](t)
	endsOf[[128]byte](t)
	endsOf[[192]byte](t)
	endsOf[[256]byte](t)
}

func endsOf[A [4]byte | [8]byte | [12]byte | [16]byte | [24]byte | [32]byte | [48]byte | [64]byte | [96]byte |
	[128]byte | [192]byte | [256]byte](t *testing.T) {
	// The bytes around x aren't zero, so a read past its end would show.
	var among struct {
		before [8]byte
		x      arena.Inline[A]
		after  [8]byte
	}
	all := unsafe.Slice((*byte)(unsafe.Pointer(&among)), unsafe.Sizeof(among))
	text := all[8 : len(all)-8]
	for _, fill := range []byte{0, 1, 0xff} {
		for _, last := range []byte{1, 0x80, 0xff} {
			for n := 0; n <= len(text); n++ {
				for i := range all {
					all[i] = 0xff
				}
				clear(text)
				for i := range n {
					text[i] = fill
				}
				if n > 0 {
					text[n-1] = last
				}
				got := among.x.Bytes()
				if string(got) != string(text[:n]) || cap(got) != n || among.x.String() != string(text[:n]) {
					t.Fatalf("%d bytes, the last of %d is %#x, before it are %#x: %q", len(text), n, last, fill, got)
				}
			}
		}
	}
}

// FuzzInline: any bytes, for example from a file, are exactly one text, and == agrees with the
// texts.
func FuzzInline(f *testing.F) {
	f.Add([]byte("ada\x00\x00"), []byte("ada"))
	f.Fuzz(func(t *testing.T, one, other []byte) {
		var x, y, z text16
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&x)), 16), one)
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&y)), 16), other)
		require.Equal(t, x == y, x.String() == y.String())
		require.True(t, z.Set(x.String()))
		require.Equal(t, x, z)
		require.True(t, z.SetBytes(y.Bytes()))
		require.Equal(t, y, z)
		require.Equal(t, strings.TrimRight(string(one[:min(16, len(one))]), "\x00"), x.String())
	})
}

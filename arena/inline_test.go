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

// TestInline: what fits is kept to the byte, what doesn't changes nothing, and two are equal when their texts are.
func TestInline(t *testing.T) {
	assert.NoError(t, arena.CheckPlain(reflect.TypeFor[text16]()))
	assert.EqualValues(t, 16, unsafe.Sizeof(text16{}))
	assert.EqualValues(t, 1, unsafe.Alignof(text16{}))
	seen := map[text16]string{}
	for _, text := range []string{"", "a", "ada", "Zoë", "\xff\xfe", "a\x00b", "\x00a", strings.Repeat("x", 15), strings.Repeat("x", 16)} {
		var x text16
		for _, before := range []string{"", "a longer text!!!", "b"} { // nothing of it is left
			require.True(t, x.Set(before))
			require.True(t, x.Set(text))
			assert.Equal(t, text, x.String())
			assert.Equal(t, []byte(text), append([]byte{}, x.Bytes()...))
			assert.Equal(t, len(text), cap(x.Bytes()))
			seen[x] = text
		}
		was := x
		for _, bad := range []string{strings.Repeat("y", 17), strings.Repeat("y", 1000), "\x00", "a\x00", strings.Repeat("y", 15) + "\x00"} {
			assert.False(t, x.Set(bad), "%q", bad)
			assert.Equal(t, was, x)
		}
	}
	assert.Len(t, seen, 9)
	for x, text := range seen {
		assert.Equal(t, text, x.String())
	}
	var a, b arena.Inline[[256]byte]
	assert.Zero(t, testing.AllocsPerRun(100, func() { a.Set(b.String()); b.Set("frog") }))
	assert.True(t, a == b && a.Set(a.String()) && a.String() == "frog", "of itself, too")
}

// FuzzInline: also what was read from a file is one text, and == says what the texts say.
func FuzzInline(f *testing.F) {
	f.Add([]byte("ada\x00\x00"), []byte("ada"))
	f.Fuzz(func(t *testing.T, one, other []byte) {
		var x, y, z text16
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&x)), 16), one)
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&y)), 16), other)
		require.Equal(t, x == y, x.String() == y.String())
		require.True(t, z.Set(x.String()))
		require.Equal(t, x, z)
		require.Equal(t, strings.TrimRight(string(one[:min(16, len(one))]), "\x00"), x.String())
	})
}

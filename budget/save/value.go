package save

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
)

func (t *typeLayout) value(b []byte) string {
	var first [8]byte
	copy(first[:], b)
	word := binary.LittleEndian.Uint64(first[:]) // all of a number of up to 8 bytes
	switch t.Kind {
	case "bool":
		if word > 1 {
			return fmt.Sprintf("bool(%d)", word)
		}
		return strconv.FormatBool(word == 1)
	case "int8", "int16", "int32", "int64":
		return fmt.Sprint(t.integer(b))
	case "uint8", "uint16", "uint32", "uint64":
		return fmt.Sprint(word)
	case "float32":
		return floatText(float64(math.Float32frombits(uint32(word))), 32, word)
	case "float64":
		return floatText(math.Float64frombits(word), 64, word)
	case "complex64", "complex128":
		half := numbers[fmt.Sprintf("float%d", 4*t.Size)]
		return half.value(b[:half.Size]) + " and " + half.value(b[half.Size:]) + "i"
	case kindHandle:
		if word == 0 {
			return "no handle"
		}
		return fmt.Sprintf("handle of chunk %d, generation %#x", word&arena_c.HandleIndex, word>>32)
	case kindPtr:
		return offsetText(word)
	case kindSlice, kindString:
		return fmt.Sprintf("%d at %s", binary.LittleEndian.Uint64(b[8:]), offsetText(word))
	case kindInline:
		return strconv.Quote(strings.TrimRight(string(b), "\x00"))
	}
	return fmt.Sprintf("% x", b[:min(len(b), 16)])
}

// floatText returns a float as text, with the sign of zero and the bits of a NaN.
func floatText(f float64, size int, bits uint64) string {
	if f == f {
		return strconv.FormatFloat(f, 'g', -1, size)
	}
	return fmt.Sprintf("NaN (%#x)", bits)
}

func offsetText(stored uint64) string {
	if stored == 0 {
		return "nil"
	}
	return fmt.Sprintf("offset %#x", stored-1)
}

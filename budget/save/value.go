package save

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
)

// value is a value as a person reads it.
func (t *typeLayout) value(b []byte) string {
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	switch t.Kind {
	case "bool":
		if b[0] > 1 {
			return fmt.Sprintf("bool(%d)", b[0])
		}
		return strconv.FormatBool(b[0] == 1)
	case "int8":
		return fmt.Sprint(int8(b[0]))
	case "int16":
		return fmt.Sprint(int16(binary.LittleEndian.Uint16(b)))
	case "int32":
		return fmt.Sprint(int32(binary.LittleEndian.Uint32(b)))
	case "int64":
		return fmt.Sprint(int64(word(0)))
	case "uint8":
		return fmt.Sprint(b[0])
	case "uint16":
		return fmt.Sprint(binary.LittleEndian.Uint16(b))
	case "uint32":
		return fmt.Sprint(binary.LittleEndian.Uint32(b))
	case "uint64":
		return fmt.Sprint(word(0))
	case "float32":
		bits := binary.LittleEndian.Uint32(b)
		return floatText(float64(math.Float32frombits(bits)), 32, uint64(bits))
	case "float64":
		return floatText(math.Float64frombits(word(0)), 64, word(0))
	case "complex64", "complex128":
		half := &typeLayout{Kind: "float32"}
		if t.Size == 16 {
			half.Kind = "float64"
		}
		return half.value(b) + " and " + half.value(b[len(b)/2:]) + "i"
	case kindHandle:
		if word(0) == 0 {
			return "no handle"
		}
		return fmt.Sprintf("handle of chunk %d, generation %#x", word(0)&arena_c.HandleIndex, word(0)>>32)
	case kindPtr:
		return offsetText(word(0))
	case kindSlice, kindString:
		return fmt.Sprintf("%d at %s", word(8), offsetText(word(0)))
	case kindInline:
		return strconv.Quote(strings.TrimRight(string(b), "\x00"))
	}
	return fmt.Sprintf("% x", b[:min(len(b), 16)])
}

// floatText tells a zero from the other, and a NaN from the next.
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

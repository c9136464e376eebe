package budget

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

var sizeUnits = []struct {
	name  string
	bytes uint64
}{{"TiB", 1024 * GiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}}

// SizeText returns a size in KiB, rounded up: "4096KiB". Below 100 KiB it has one decimal, unless
// that is 0: "3.8KiB". Reports, drawn plans, and errors about the machine use this unit. Sizes that
// a reader may copy are exact: a plan's own values are as in a plan file ("4MiB", "65537"), and a
// [scope.FullError] has the size to set in bytes.
func SizeText(size uint64) string {
	if tenths := (size%KiB*10 + KiB - 1) / KiB; size < 100*KiB && tenths%10 != 0 {
		return fmt.Sprintf("%d.%dKiB", size/KiB, tenths)
	}
	return strconv.FormatUint(size/KiB+min(1, size%KiB), 10) + "KiB"
}

// sizeInPlan returns a size as in a plan file, in the largest unit that divides it: "4MiB",
// "65537".
func sizeInPlan(size uint64) string {
	for _, unit := range sizeUnits {
		if size != 0 && size%unit.bytes == 0 {
			return strconv.FormatUint(size/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatUint(size, 10)
}

// goHeapText returns the plan's Go heap as sizeInPlan does, or "rest".
func (p Plan) goHeapText() string {
	if p.GoHeap == Rest {
		return `"rest"`
	}
	return sizeInPlan(p.GoHeap)
}

// ParseSize parses a size as in a plan file: "4MiB", or a number of bytes. Its error is the end of
// a sentence that begins with the text: "is not a size ...", "is too large for a size".
func ParseSize(text string) (uint64, error) {
	digits, scale := text, uint64(1)
	for _, unit := range sizeUnits {
		if rest, found := strings.CutSuffix(text, unit.name); found {
			digits, scale = rest, unit.bytes
		}
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, errNotSize
	}
	count, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || count > math.MaxUint64/scale {
		return 0, errTooLarge
	}
	return count * scale, nil
}

func addressText(address uint64) string { return "0x" + strconv.FormatUint(address, 16) }

// Errors of a value, which precedes the text.
var (
	errNotSize     = errors.New(`is not a size (whole bytes, or as "4MiB" with KiB, MiB, GiB or TiB)`)
	errTooLarge    = errors.New("is too large for a size")
	errNotExpected = errors.New("is no size to expect; leave the key out to expect nothing")
	errNotCount    = errors.New("is not a count (a whole number from 0)")
	errNotAddress  = errors.New(`is not an address of 64 bits (a string as "0x200000000000", or a whole number)`)
	errNotBool     = errors.New(`is neither true nor false`)
	errNotTrim     = errors.New(`is not a moment of trimming ("empty")`)
	errNotPercent  = errors.New(`is not a share (a string as "80%")`)
	errNotTime     = errors.New(`is not a time (a string as "1s" or "250ms")`)
	errNotDemand   = errors.New(`is not a demand ("off", "wished" or "required")`)
)

// plural returns a count with its noun: "1 slot", "3 slots".
func plural[N int | int64](count N, thing string) string {
	if count != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", count, thing)
}

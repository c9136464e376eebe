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

// SizeText writes a size for people: in KiB, rounded up, below 100 KiB to a tenth: "4096KiB", "3.8KiB". Reports, plans as
// they are drawn, frogpond, and errors about the machine write all sizes so, and none of them mixes units. What is exact to
// the byte is so because somebody may copy it: what speaks of a plan's own values is as in a plan file ("4MiB", "65537"),
// and a [scope.FullError] is in bytes, with the size to raise a key to.
func SizeText(size uint64) string {
	if tenths := (size%KiB*10 + KiB - 1) / KiB; size < 100*KiB && tenths%10 != 0 {
		return fmt.Sprintf("%d.%dKiB", size/KiB, tenths)
	}
	return strconv.FormatUint(size/KiB+min(1, size%KiB), 10) + "KiB"
}

// sizeInPlan writes a size as a plan file has it, in the largest unit that divides it: "4MiB", "65537".
func sizeInPlan(size uint64) string {
	for _, unit := range sizeUnits {
		if size != 0 && size%unit.bytes == 0 {
			return strconv.FormatUint(size/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatUint(size, 10)
}

// ParseSize reads a size as a plan file has it: "4MiB", or plain bytes. The error says what the text is not.
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

// parseSizeOrRest is ParseSize for a region's size, which may be "rest". The number that stands for
// it in Go is too large.
func parseSizeOrRest(text string) (uint64, error) {
	if text == "rest" {
		return Rest, nil
	}
	size, err := ParseSize(text)
	switch {
	case size == Rest:
		err = errTooLarge
	case err == errNotSize:
		err = errNotSizeOrRest
	}
	return size, err
}

// parseCount reads a number of things. No count of a plan has more than five digits.
func parseCount(text string) (int, error) {
	count, err := strconv.ParseInt(text, 10, 32)
	if err != nil || count < 0 {
		return 0, errNotCount
	}
	return int(count), nil
}

// addressText writes an address: "0x200000000000".
func addressText(address uint64) string { return "0x" + strconv.FormatUint(address, 16) }

// parseAddress reads what addressText writes.
func parseAddress(text string) (uint64, error) {
	digits, found := strings.CutPrefix(text, "0x")
	address, err := strconv.ParseUint(digits, 16, 64)
	if !found || err != nil {
		return 0, errNotAddress
	}
	return address, nil
}

// What a value is that is not what it should be; the value stands before.
var (
	errNotSize       = errors.New(`is not a size (whole bytes, or as "4MiB" with KiB, MiB, GiB or TiB)`)
	errNotSizeOrRest = errors.New(`is not a size (whole bytes, or as "4MiB" with KiB, MiB, GiB or TiB, or "rest")`)
	errTooLarge      = errors.New("is too large for a size")
	errNotCount      = errors.New("is not a count (a whole number from 0)")
	errNotAddress    = errors.New(`is not an address of 64 bits (a string as "0x200000000000", or a whole number)`)
	errNotBool       = errors.New(`is neither true nor false`)
	errNotDemand     = errors.New(`is not a demand ("off", "wished" or "required")`)
)

// plural is so many things: "1 slot", "3 slots".
func plural[N int | int64](count N, thing string) string {
	if count != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", count, thing)
}

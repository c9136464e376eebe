package platform

import (
	"io/fs"
	"math"
	"strconv"
	"strings"
)

// teller reads the system's reports about itself; tests replace its files.
type teller struct {
	files  fs.FS // the root directory
	rlimit func(resource int) (soft uint64, ok bool)
	memory func() (size uint64, ok bool)
}

// text returns the contents of a file, "" if it can't be read.
func (t teller) text(file string) string {
	text, _ := fs.ReadFile(t.files, strings.TrimPrefix(file, "/"))
	return string(text)
}

// words returns the words after the key in a line of the file: "VmData:  1234 kB".
func (t teller) words(file, key string) []string {
	for line := range strings.Lines(t.text(file)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == key {
			return words[1:]
		}
	}
	return nil
}

// kilobytes returns the size in a line of the file, which has kB, in bytes.
func (t teller) kilobytes(file, key string) (size uint64, ok bool) {
	words := t.words(file, key)
	if len(words) != 2 || words[1] != "kB" {
		return 0, false
	}
	kib, err := strconv.ParseUint(words[0], 10, 53)
	return kib << 10, err == nil
}

// number returns the number in a file. A file with "max" has no number.
func (t teller) number(file string) (value uint64, ok bool) {
	value, err := strconv.ParseUint(strings.TrimSpace(t.text(file)), 10, 64)
	return value, err == nil
}

// unlimited reports whether a bound is beyond any machine, or beyond the pointers of this target.
// Version 1 of cgroups writes the largest signed number, rounded down to its page.
func unlimited(bound uint64) bool { return bound >= 1<<62 || bound > math.MaxUint }

//go:build !race && !asan && !checked && !upfront_cgo

package tests

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// banned calls, each with its replacement.
var banned = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`unsafe\.Pointer\(uintptr\(`),
		"base plus unsafe.Add: a pointer made of a number dies under checkptr"},
	{regexp.MustCompile(`runtime\.SetFinalizer|runtime\.AddCleanup`),
		"a finalizer of a scope: it runs at a time that can be named"},
	{regexp.MustCompile(`//go:linkname`), "public API: the next Go release breaks the rest"},
	{regexp.MustCompile(`\b(malloc|calloc|realloc|free)\(`), "the block: the core never asks for memory"},
	{regexp.MustCompile(`#cgo .*-Werror`), "warnings in the Makefile's own cc lines: they break users' builds"},
}

// allocators match the files about malloc: C's malloc of a process, and those that the library is
// compared with.
var allocators = regexp.MustCompile(`tests/bench/(cfloor|heaps|resident)/|(arena/with|tests)/malloc/|tests/full/leaks/`)

// sources visits the code of the tree, by paths from this folder.
func sources(t *testing.T, visit func(path, text string)) {
	t.Helper()
	writings(t, func(path, text string) {
		switch filepath.Ext(path) {
		case ".go", ".c", ".h", ".sh", ".mk":
			visit("../"+path, text)
		}
	})
}

func TestBannedCalls(t *testing.T) {
	sources(t, func(path, text string) {
		if strings.HasSuffix(path, "style_test.go") || allocators.MatchString(path) {
			return
		}
		for i, line := range strings.Split(text, "\n") {
			code, _, _ := strings.Cut(line, "// ")
			for _, b := range banned {
				assert.False(t, b.pattern.MatchString(code), "%s:%d: write %s", path, i+1, b.instead)
			}
		}
	})
}

// gone are words of our own that the field's words replaced.
var gone = map[string]string{
	`[Aa]ccounts?`:                  "label",
	`Held|EachHeld`:                 "Owned",
	`[Pp]ads?|OpenPads|UPFRONT_PAD`: "scratch",
	`Lent|Give`:                     "Lease, Release",
	`Enter|Leave`:                   "Reader, Pin, Unpin",
	`[Rr]edraw\w*`:                  "reconfigure",
	`mouths?`:                       "binding",
	`memdebug|memtrace`:             "checked",
	`slots? header|stretched`:       "what the heart has instead: arena, record, mirror",
}

// TestWords: the old words are used nowhere.
func TestWords(t *testing.T) {
	sources(t, func(path, text string) {
		// A game has its own words.
		if strings.HasSuffix(path, "style_test.go") || strings.HasPrefix(path, "../tests/frogpond/") {
			return
		}
		for word, instead := range gone {
			for _, at := range regexp.MustCompile(`\b(`+word+`)\b`).FindAllStringIndex(text, -1) {
				line := 1 + strings.Count(text[:at[0]], "\n")
				assert.Fail(t, "an old word", "%s:%d: %q is %s now", path, line, text[at[0]:at[1]], instead)
			}
		}
	})
}

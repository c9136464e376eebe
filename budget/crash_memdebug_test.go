//go:build memdebug && !race && linux

package budget_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

var (
	bytesOf = scope.Plain[byte]()
	read    byte
)

// A misuse is committed in a process of its own, after ready; in the text the calls are these functions.
var misuses = map[string]func(*budget.Budget){
	"nothing":          func(b *budget.Budget) { keepsAFrog(b).X++ },
	"read rewound":     func(b *budget.Budget) { f := keepsAFrog(b); rewinds(b); readsByte(f, 8) },
	"behind rewound":   func(b *budget.Budget) { f := keepsAFrog(b); rewinds(b); readsByte(f, 24+3) },
	"recovers":         func(b *budget.Budget) { f := keepsAFrog(b); rewinds(b); recovers(func() { readsByte(f, 8) }) },
	"after Close":      func(b *budget.Budget) { f := keepsAFrog(b); closes(b); readsByte(f, 8) },
	"guard of tables":  func(b *budget.Budget) { readsByte(b.Base().Bytes(), arena_c.Edge) },
	"past the end":     func(b *budget.Budget) { writesByte(keepsAFrog(b), 24+2); rewinds(b) },
	"past an object":   func(b *budget.Budget) { writesByte(keepsAFrog(b), -16); rewinds(b) },
	"before the first": func(b *budget.Budget) { writesByte(keepsBytes(b), -1); rewinds(b) },
	"after a scope": func(b *budget.Budget) {
		loadsAnd(b, func(s scope.Scope) {
			inner := s.Open("inner")
			kept := bytesOf.Slice(inner, 100)
			closesScope(inner)
			writesByte(kept, 99)
			bytesOf.Slice(s, 200)
		})
	},
	"not yet made": func(b *budget.Budget) {
		loadsAnd(b, func(s scope.Scope) {
			writesByte(bytesOf.Slice(s, 64), 200)
			bytesOf.Slice(s, 300)
		})
	},
	"after Put": func(b *budget.Budget) {
		loadsAnd(b, func(s scope.Scope) {
			pool := frogs.Pool(s, 2)
			f := pool.Get()
			pool.Put(f)
			writesByte(f, 20)
			pool.Get()
		})
	},
	"past a chunk": func(b *budget.Budget) {
		loadsAnd(b, func(s scope.Scope) {
			pool := frogs.Pool(s, 2)
			f := pool.Get()
			writesByte(f, 24)
			pool.Put(f)
		})
	},
}

func keepsAFrog(b *budget.Budget) (f *frog) {
	loadsAnd(b, func(s scope.Scope) {
		_ = scope.Account(s, "sound", func() error { f = frogs.New(s); return nil })
	})
	return f
}

func keepsBytes(b *budget.Budget) (block []byte) {
	_, _ = budget.Load(background, b.Region("level"), func(s scope.Scope) (*byte, error) {
		block = bytesOf.Slice(s, 10)
		return &block[0], nil
	})
	return block
}

func loadsAnd(b *budget.Budget, fn func(scope.Scope)) {
	_, _ = load(b, "level", func(s scope.Scope) error { fn(s); return nil })
}

func rewinds(b *budget.Budget)     { _ = b.Region("level").Rewind(background) }
func closes(b *budget.Budget)      { _ = b.Close() }
func closesScope(s scope.Scope)    { _ = s.Close() }
func readsByte(thing any, at int)  { read += *byteOf(thing, at) }
func writesByte(thing any, at int) { *byteOf(thing, at) = 0x41 }

func byteOf(thing any, at int) *byte {
	switch x := thing.(type) {
	case *frog:
		return (*byte)(unsafe.Add(unsafe.Pointer(x), at))
	case []byte:
		return (*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(x)), at))
	}
	panic(thing)
}

func recovers(fn func()) {
	debug.SetPanicOnFault(true)
	defer func() { fmt.Fprintf(os.Stderr, "recovered: %t\n", recover() != nil) }()
	fn()
}

const misuseKey = "UPFRONT_MISUSE"

// TestMisuse is the child of the test below.
func TestMisuse(*testing.T) {
	if name := os.Getenv(misuseKey); name != "" {
		plan := small()
		plan.Pages.Guards = budget.Required
		b, err := budget.Open(plan)
		if err == nil {
			misuses[name](b)
			err = b.CheckAll()
		}
		fmt.Fprintln(os.Stderr, "alive:", err)
		os.Exit(0)
	}
}

var (
	hexNumber = regexp.MustCompile(`0x[0-9a-f]{6,}`)
	siteCall  = regexp.MustCompile(`^\t\t(?:\S*/budget_test\.(\w+))?\S* \S+:\d+$`)
)

// tidy takes addresses out, and of the calls all but those of this file's functions by name.
func tidy(said string) string {
	var lines []string
	last := ""
	for line := range strings.SplitSeq(hexNumber.ReplaceAllString(said, "0x…"), "\n") {
		if call := siteCall.FindStringSubmatch(line); call != nil {
			if line = "\t\t" + call[1]; line == last || slices.Contains([]string{"", "init", "load", "loadRegion", "TestMisuse"}, call[1]) {
				continue
			}
		}
		last = line
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// misuse gives what the process said, tidied, and its exit status.
func misuse(t *testing.T, name string) (text string, status int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestMisuse$")
	cmd.Env = append(os.Environ(), misuseKey+"="+name)
	var said strings.Builder
	cmd.Stderr = &said
	_ = cmd.Run()
	assert.False(t, strings.Contains(said.String(), "\tslices."), "the first call that is told is the caller's")
	return tidy(said.String()), cmd.ProcessState.ExitCode()
}

const (
	goFault = "unexpected fault address 0x…\nfatal error: fault\n[signal SIGSEGV"
	goStack = "\ngoroutine "
)

// rewoundFrog is what is said of a byte of the frog that rewinds rewound.
func rewoundFrog(index int) string {
	return fmt.Sprintf(`upfront: BUG: read or write of 0x… in budget "small", region "level": byte %d of an object`+
		` of 24 bytes of scope "level" (account "sound"), which was closed or rewound
	made at:
		keepsAFrog
		loadsAnd
		keepsAFrog
	closed or rewound at:
		rewinds
`, index)
}

// What each says, to the letter; what comes then is Go's.
var misuseTold = []struct {
	name, begins string
	status       int
}{
	{"nothing", "alive: <nil>\n", 0},
	{"read rewound", rewoundFrog(8) + goFault, 2},
	{"behind rewound", rewoundFrog(27) + goFault, 2},
	{"recovers", rewoundFrog(8) + "recovered: true\nalive: <nil>\n", 0},
	{"after Close", `upfront: BUG: read or write of 0x… in budget "small", which is closed
	closed at:
		closes
` + goFault, 2},
	{"guard of tables", `upfront: BUG: read or write of 0x… in budget "small": the slack or the guard behind the control tables
` + goFault, 2},
	{"past the end", `upfront: BUG: write past the end of an object, or to bytes that nobody had yet: byte 26 of an object` +
		` of 24 bytes of scope "level" (account "sound") in region "level": 0x41 where 0x00 should be
	made at:
		keepsAFrog
		loadsAnd
		keepsAFrog
	closed or rewound at:
		rewinds
` + goStack, 2},
	{"past an object", `upfront: BUG: write past the end of an object, or before the next: byte 24 of an object of` +
		` 24 bytes of scope "level", 16 bytes before an object of 24 bytes of scope "level" (account "sound") in region "level":` +
		` 0x41 where 0xfb should be
	made at:
		loadsAnd
		keepsAFrog
	the next made at:
		keepsAFrog
		loadsAnd
		keepsAFrog
` + goStack, 2},
	{"before the first", `upfront: BUG: write before the first object: 1 byte before an object of 10 bytes of scope` +
		` "level" in region "level": 0x41 where 0xfb should be
	made at:
		keepsBytes
` + goStack, 2},
	{"after a scope", `upfront: BUG: write to what was closed or rewound: byte 99 of an object of 100 bytes of scope` +
		` "inner" in region "level": 0x41 where 0xdb should be
	made at:
		loadsAnd
	closed or rewound at:
		closesScope
		loadsAnd
` + goStack, 2},
	{"not yet made", `upfront: BUG: write past the end of an object, or to bytes that nobody had yet: byte 200 of an object` +
		` of 64 bytes of scope "level" in region "level": 0x41 where 0x00 should be
	made at:
		loadsAnd
` + goStack, 2},
	{"after Put", `upfront: BUG: write after put: byte 20 of a chunk of 24 bytes of scope "level"` +
		` in region "level": 0x41 where 0xdb should be
	its pool made at:
		loadsAnd
` + goStack, 2},
	{"past a chunk", `upfront: BUG: write past the end of a chunk, or before the next: byte 24 of a chunk of 24 bytes of scope "level"` +
		` in region "level": 0x41 where 0xfb should be
	its pool made at:
		loadsAnd
` + goStack, 2},
}

func TestMisuseIsTold(t *testing.T) {
	for _, c := range misuseTold {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, status := misuse(t, c.name)
			assert.Equal(t, c.begins, text[:min(len(c.begins), len(text))])
			assert.Equal(t, c.status, status)
		})
	}
}

//go:build checked && !race && (linux || windows)

package budget_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
)

var read byte

// Each misuse runs in a process of its own, after ready. The report has the names of these
// functions.
var misuses = map[string]func(*budget.Budget){
	"nothing": func(b *budget.Budget) { readsByte(b, 0) },
	"after Close": func(b *budget.Budget) {
		frogs := b.Region("level").Base().Bytes()
		closes(b)
		read += frogs[0]
	},
	"guard of tables": func(b *budget.Budget) { readsByte(b, arena_c.Edge) },
	"guard of level":  func(b *budget.Budget) { readsByte(b, guardOf(b, "level")) },
	"recovers":        func(b *budget.Budget) { recovers(func() { readsByte(b, arena_c.Edge) }) },
	"stale read":      func(b *budget.Budget) { x := makes(b); rewinds(b); read += byte(x.X) },
	"stale fill":      func(b *budget.Budget) { x := makes(b); rewinds(b); fmt.Fprintf(os.Stderr, "%#x\n", byte(x.X)) },
	"stale write":     func(b *budget.Budget) { x := closesQuery(b); x.X = 7 },
	"overflow":        func(b *budget.Budget) { unsafe.Slice(&makes(b).X, 5)[4] = 7 },
	"overflow, told":  func(b *budget.Budget) { unsafe.Slice(&makes(b).X, 5)[4] = 7; rewinds(b) },
	"underflow":       func(b *budget.Budget) { *(*byte)(unsafe.Add(unsafe.Pointer(makes(b)), -1)) = 7 },
	"put":             func(b *budget.Budget) { puts(b).X = 7 },
	"lease":           func(b *budget.Budget) { x := gives(b); read += byte(x.X) },
	"frame":           func(b *budget.Budget) { x := endsFrames(b); read += byte(x.X) },
	"sibling":         func(b *budget.Budget) { h := holdsSibling(b); reloads(b); read += byte(h.To.Get().X) },
}

// plans are plans that suit a checked build as much as any build.
var misusedPlans = map[string]func(plan *budget.Plan){
	"plain":    func(*budget.Plan) {},
	"guards":   func(plan *budget.Plan) { plan.Pages.Guards = budget.Required },
	"lock":     func(plan *budget.Plan) { plan.Pages.Lock = budget.Wished },
	"huge":     func(plan *budget.Plan) { plan.Pages.Huge = budget.Wished },
	"base":     func(plan *budget.Plan) { plan.Base, plan.Pages.Base = uint64(platform.SafeBase()), budget.Wished },
	"prefault": func(plan *budget.Plan) { plan.Pages.Prefault = budget.Wished },
	"siblings": func(plan *budget.Plan) { plan.Regions[2].On = "init" }, // level, next to systems
	"OpenIn":   nil,
}

func makes(b *budget.Budget) *frog {
	level, _ := load(b, "level", nil)
	return level.Get()
}

// holder is an object of a region, with the address of another region's object.
type holder struct{ To scope.Addr[frog] }

// holdsSibling returns an object of systems that holds one of level.
func holdsSibling(b *budget.Budget) (h *holder) {
	var to scope.Addr[frog]
	_, _ = load(b, "level", func(s scope.Scope) error { to = scope.AddrOf(s, frogs.New(s)); return nil })
	_, _ = load(b, "systems", func(s scope.Scope) error {
		h = scope.Plain[holder]().New(s)
		h.To = to
		return nil
	})
	return h
}

func reloads(b *budget.Budget) {
	_, _ = budget.Load(background, b.Region("level"), func(scope.Scope) (*frog, error) { return nil, nil })
}

func rewinds(b *budget.Budget) { _ = b.Region("level").Rewind(background) }

func closesQuery(b *budget.Budget) *frog {
	query := b.Scratch(0, 0).Open("query")
	x := frogs.New(query)
	_ = query.Close()
	return x //upfront:keeps reading it crashes
}

func gives(b *budget.Budget) *frog {
	scratches, _ := b.Lease(background)
	query := scratches.Scratch(0).Open("query")
	x := frogs.New(query)
	_ = query.Close()
	_ = scratches.Release()
	return x //upfront:keeps reading it crashes
}

func endsFrames(b *budget.Budget) *frog {
	x := frogs.New(b.Frame())
	_ = b.NextFrame()
	_ = b.NextFrame()
	return x
}

func puts(b *budget.Budget) (x *frog) {
	_, _ = load(b, "level", func(s scope.Scope) error {
		pool := frogs.Pool(s, 3)
		x = pool.Get()
		pool.Put(x)
		return nil
	})
	return x
}

func closes(b *budget.Budget)            { _ = b.Close() }
func readsByte(b *budget.Budget, at int) { read += b.Base().Bytes()[at] }

// guardOf returns the offset of the first page after a region.
func guardOf(b *budget.Budget, region string) int {
	bytes := b.Region(region).Base().Bytes()
	end := int(addressOf(&bytes[0])-addressOf(&b.Base().Bytes()[0])) + len(bytes)
	return (end + arena_c.Edge - 1) / arena_c.Edge * arena_c.Edge
}

func recovers(fn func()) {
	debug.SetPanicOnFault(true)
	defer func() { fmt.Fprintf(os.Stderr, "recovered: %t\n", recover() != nil) }()
	fn()
}

const (
	misuseKey = "UPFRONT_MISUSE"
	planKey   = "UPFRONT_MISUSE_PLAN"
)

func TestMisuse(*testing.T) {
	if name := os.Getenv(misuseKey); name != "" {
		b, err := openMisused(os.Getenv(planKey))
		if err == nil {
			misuses[name](b)
			_, err = b.Walk()
		}
		fmt.Fprintln(os.Stderr, "alive:", err)
		os.Exit(0)
	}
}

func openMisused(kind string) (*budget.Budget, error) {
	plan := small()
	if kind == "OpenIn" {
		need, _ := plan.Need()
		return budget.OpenIn(make([]byte, need), plan)
	}
	misusedPlans[kind](&plan)
	return budget.Open(plan)
}

var (
	hexNumber = regexp.MustCompile(`0x[0-9a-f]{6,}`)
	siteCall  = regexp.MustCompile(`^\t\t(?:\S*/budget_test\.(\w+))?\S* \S+:\d+$`)
)

// tidy removes addresses, and all calls except this file's functions.
func tidy(said string) string {
	var lines []string
	last := ""
	for line := range strings.SplitSeq(hexNumber.ReplaceAllString(said, "0x…"), "\n") {
		if call := siteCall.FindStringSubmatch(line); call != nil {
			if line = "\t\t" + call[1]; line == last || slices.Contains([]string{"", "init", "TestMisuse"}, call[1]) {
				continue
			}
		}
		last = line
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// misuse returns the output of the process, tidied, and its exit status.
func misuse(t *testing.T, name, plan string) (text string, status int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestMisuse$")
	cmd.Env = append(os.Environ(), misuseKey+"="+name, planKey+"="+plan)
	var said strings.Builder
	cmd.Stderr = &said
	_ = cmd.Run()
	assert.False(t, strings.Contains(said.String(), "\tslices."), "the first call that is told is the caller's")
	return tidy(said.String()), cmd.ProcessState.ExitCode()
}

const goFault = "unexpected fault address 0x…\nfatal error: fault\n[signal SIGSEGV"

// The exact text of each misuse; Go's own report follows.
type told struct {
	name, begins string
	status       int
}

func (c told) compare(t *testing.T, plan string) {
	t.Run(plan+"/"+c.name, func(t *testing.T) {
		t.Parallel()
		text, status := misuse(t, c.name, plan)
		assert.Equal(t, c.begins, text[:min(len(c.begins), len(text))])
		assert.Equal(t, c.status, status)
	})
}

var toldWithGuards = []told{
	{"nothing", "alive: <nil>\n", 0},
	{"after Close", `upfront: BUG: read or write of 0x… in budget "small", which is closed
	closed at:
		closes
` + goFault, 2},
	{"guard of tables",
		`upfront: BUG: read or write of 0x… in budget "small": the unused bytes or the guard after the control tables: an index or a size is out of range
` + goFault, 2},
	{"guard of level",
		`upfront: BUG: read or write of 0x… in budget "small": the unused bytes or the guard after region "level": an index or a size is out of range
` + goFault, 2},
	{"recovers",
		`upfront: BUG: read or write of 0x… in budget "small": the unused bytes or the guard after the control tables: an index or a size is out of range
recovered: true
alive: <nil>
`, 0},
}

const ofMakes = "\n\tmade at:\n\t\tloadRegion\n\t\tload\n\t\tmakes\n"

var toldEverywhere = []told{
	{"stale read",
		`upfront: BUG: read or write of memory that was rewound, at 0x… in budget "small": 24 bytes of region "level" at 0x…` + ofMakes + `	ended at:
		rewinds
` + goFault, 2},
	{"stale write",
		`alive: upfront: BUG: write to memory that was closed, at 0x… in budget "small": 24 bytes of scratch 0.0 at 0x…
	made at:
		closesQuery
	ended at:
		closesQuery
`, 0},
	{"overflow",
		`alive: upfront: BUG: write past the end of an object, at 0x… in budget "small": 24 bytes of region "level" at 0x…` + ofMakes,
		0},
	{"overflow, told",
		`upfront: BUG: write past the end of an object, at 0x… in budget "small": 24 bytes of region "level" at 0x…` +
			ofMakes + `SIGABRT: abort
`, 2},
	{"underflow",
		`alive: upfront: BUG: write before the start of an object, at 0x… in budget "small": 24 bytes of region "level" at 0x…` + ofMakes,
		0},
	{"put", `alive: upfront: BUG: write after put, at 0x… in budget "small": 24 bytes of region "level" at 0x…
	made at:
		puts
		loadRegion
		load
		puts
	put at:
		puts
		loadRegion
		load
		puts
`, 0},
	{"lease",
		`upfront: BUG: read or write of memory that was closed, at 0x… in budget "small": 24 bytes of scratch 1.0 at 0x…
	made at:
		gives
	ended at:
		gives
` + goFault, 2},
	{"frame",
		`upfront: BUG: read or write of memory that was rewound, at 0x… in budget "small": 24 bytes of frame 0 at 0x…
	made at:
		endsFrames
	ended at:
		endsFrames
` + goFault, 2},
}

// ofSibling is the report of an object that was loaded again while its sibling held it: the emptied
// region, and the line of the load that emptied it.
var ofSibling = told{"sibling",
	`upfront: BUG: read or write of memory that was rewound, at 0x… in budget "small": 24 bytes of region "level" at 0x…
	made at:
		holdsSibling
		loadRegion
		load
		holdsSibling
	ended at:
		reloads
` + goFault, 2}

const windowsFault = "unexpected fault address 0x…\nfatal error: fault\n[signal 0x… code=0x"

// A fault on Windows has Go's report alone. Objects have no addresses apart there (ReserveSparse),
// so that damage to one isn't reported, and a stale read finds fills.
var toldOnWindows = []told{
	{"nothing", "alive: <nil>\n", 0},
	{"after Close", windowsFault, 2},
	{"guard of tables", windowsFault, 2},
	{"guard of level", windowsFault, 2},
	{"recovers", "recovered: true\nalive: <nil>\n", 0},
	{"stale fill", "0xdb\nalive: <nil>\n", 0},
	{"stale write", "alive: <nil>\n", 0},
	{"overflow", "alive: <nil>\n", 0},
}

func TestMisuseIsTold(t *testing.T) {
	if runtime.GOOS == "windows" {
		for _, c := range toldOnWindows {
			c.compare(t, "guards")
		}
		return
	}
	for _, c := range toldWithGuards {
		c.compare(t, "guards")
	}
	ofSibling.compare(t, "siblings")
	for plan := range misusedPlans {
		for _, c := range toldEverywhere {
			c.compare(t, plan)
		}
	}
}

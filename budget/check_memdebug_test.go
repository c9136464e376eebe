//go:build memdebug && !race

package budget_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// thing is what a scope was asked for, as the test remembers it.
type thing struct {
	p     unsafe.Pointer
	size  int
	scope string
	index int  // how many lived when it was made: the place of its record
	lost  bool // its record is another's by now
}

func (x thing) start() uintptr { return uintptr(x.p) }
func (x thing) end() uintptr   { return x.start() + uintptr(x.size) }

// damager makes and closes things on a pad, and damages single bytes that nobody has.
type damager struct {
	t      *testing.T
	b      *budget.Budget
	random *rand.Rand
	open   []scope.Scope
	names  []string // of open
	live   []thing  // oldest first
	counts []int    // of live, when each scope was opened
	dead   []thing
	found  map[string]int
}

// TestCheckAllNamesEachByte: whichever byte it is, of a gap or of something dead, CheckAll names whose it is; and it finds
// nothing when the byte is as it was.
func TestCheckAllNamesEachByte(t *testing.T) {
	d := &damager{t: t, b: open(t, small()), random: rand.New(rand.NewPCG(3, 4)), found: map[string]int{}}
	for range 3000 {
		d.step()
		d.damage()
		if t.Failed() {
			return
		}
	}
	for _, kind := range []string{"gap", "first", "dead"} {
		assert.Greater(t, d.found[kind], 50, kind)
	}
}

func (d *damager) step() {
	switch n := d.random.IntN(10); {
	case len(d.open) < 6 && (n == 0 || len(d.open) == 0):
		name := fmt.Sprintf("scope %d", d.random.IntN(1000))
		if len(d.open) == 0 {
			d.open = append(d.open, d.b.Pad(0, 0).Open(name))
		} else {
			d.open = append(d.open, d.open[len(d.open)-1].Open(name))
		}
		d.names = append(d.names, name)
		d.counts = append(d.counts, len(d.live))
	case n == 1:
		top := len(d.open) - 1
		require.NoError(d.t, d.open[top].Close())
		d.dead = append(d.dead, d.live[d.counts[top]:]...)
		if top == 0 {
			d.dead = nil // the pad lies elsewhere from now on
		}
		d.live, d.open, d.names, d.counts = d.live[:d.counts[top]], d.open[:top], d.names[:top], d.counts[:top]
	default:
		d.make()
	}
}

func (d *damager) make() {
	top := d.open[len(d.open)-1]
	x := thing{index: len(d.live), size: 1 + d.random.IntN(1<<d.random.IntN(10)), scope: d.names[len(d.names)-1]}
	if x.p = top.TryAlloc(uint64(x.size), 1<<d.random.IntN(8)); x.p == nil {
		return
	}
	d.dead = slices.DeleteFunc(d.dead, func(y thing) bool { return y.start() < x.end() })
	for i := range d.dead {
		d.dead[i].lost = d.dead[i].lost || d.dead[i].index == x.index
	}
	d.live = append(d.live, x)
}

// damage changes a byte of each kind there is, and sees it named.
func (d *damager) damage() {
	if len(d.live) > 1 {
		i := d.random.IntN(len(d.live) - 1)
		x, next := d.live[i], d.live[i+1]
		at := x.size + d.random.IntN(16)
		d.expect("gap", unsafe.Add(x.p, at), "write past the end of an object, or before the next: "+x.byte(at)+", "+
			next.before(int(next.start()-x.start())-at), 0xfb)
	}
	if len(d.live) > 0 {
		before := 1 + d.random.IntN(16)
		d.expect("first", unsafe.Add(d.live[0].p, -before), "write before the first object: "+d.live[0].before(before), 0xfb)
	}
	if len(d.dead) > 0 {
		x := d.dead[d.random.IntN(len(d.dead))]
		at := d.random.IntN(x.size)
		if x.lost {
			d.expect("lost", unsafe.Add(x.p, at), "", 0xdb)
		} else {
			d.expect("dead", unsafe.Add(x.p, at), "write to what was closed or rewound: "+x.byte(at), 0xdb)
		}
	}
}

func (x thing) byte(at int) string { return fmt.Sprintf("byte %d of %s", at, x) }

func (x thing) before(n int) string { return fmt.Sprintf("%s before %s", plural(n, "byte"), x) }

func (x thing) String() string {
	return fmt.Sprintf("an object of %s of scope %q", plural(x.size, "byte"), x.scope)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (d *damager) expect(kind string, at unsafe.Pointer, text string, expected byte) {
	d.t.Helper()
	p := (*byte)(at)
	require.Equal(d.t, expected, *p, kind)
	*p ^= byte(1 + d.random.IntN(255))
	text = fmt.Sprintf("budget \"small\": BUG: %s in pad 0.0: %#02x where %#02x should be\n", text, *p, expected)
	err := d.b.CheckAll()
	*p = expected
	require.Error(d.t, err, kind)
	d.found[kind]++
	if kind == "lost" {
		assert.Contains(d.t, err.Error(), "to what was closed or rewound")
	} else {
		require.Equal(d.t, text, err.Error()[:min(len(text), len(err.Error()))])
		assert.Contains(d.t, err.Error(), "\tmade at:\n\t\t")
		assert.Equal(d.t, kind == "dead", strings.Contains(err.Error(), "\tclosed or rewound at:\n\t\t"))
	}
	require.NoError(d.t, d.b.CheckAll())
}

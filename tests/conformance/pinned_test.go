package conformance

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// pinnedSteps is the log of TestPinned's random program: the place of each object, and the free
// bytes. All builds and targets have the same file, so their runs agree.
//
//go:embed testdata/pinned.txt
var pinnedSteps string

// pinning is a random program over the public API, and its log.
type pinning struct {
	t     *testing.T
	b     *budget.Budget
	draws uint64
	lines []string
}

// random returns a number below n, the same on every target.
func (p *pinning) random(n int) int {
	p.draws++
	x := p.draws * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int((x ^ x>>31) % uint64(n))
}

func (p *pinning) note(format string, args ...any) {
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

// step takes a random step in a scope, and logs the offsets of its objects in the budget.
func (p *pinning) step(where string, s scope.Scope) {
	do := pinnedThings[p.random(len(pinnedThings))]
	line := where + " " + do.what
	func() {
		defer func() {
			switch answer := recover().(type) {
			case nil:
			case *scope.Misuse:
				line += " refused" // temporaries don't allow all steps
			default:
				require.ErrorIs(p.t, answer.(error), scope.ErrFull, line)
				line += " full"
			}
		}()
		for _, at := range do.make(p, s) {
			if at == nil {
				line += " nil"
				continue
			}
			line += fmt.Sprintf(" @%d", arena_c.Place(at, unsafe.Pointer(unsafe.SliceData(p.b.Base().Bytes()))))
		}
	}()
	p.note("%s, free %d", line, s.Free())
}

// nest takes steps in scopes that it opens and closes at random on top of s.
func (p *pinning) nest(where string, s scope.Scope, steps, depth int) {
	for range steps {
		if depth > 0 && p.random(8) == 0 {
			child := s.Open("child")
			p.nest(where+"+", child, p.random(10), depth-1)
			if err := child.Close(); err != nil {
				require.ErrorIs(p.t, err, scope.ErrFull)
			}
		}
		p.step(where, s)
	}
}

// play runs the whole program.
func (p *pinning) play() {
	ctx := p.t.Context()
	for round := range 4 {
		size := []int{20, 40, 120, 10}[round] // the third doesn't fit into the region
		_, err := budget.Load(ctx, p.b.Region("level"), func(s scope.Scope) (*int, error) {
			p.nest("level", s, size/2, 2)
			p.nest("level temp", s.Temp(1000*(1+p.random(5))), 4, 0)
			p.nest("level", s, size/2, 1)
			return new(int), nil
		})
		p.note("level is full: %v", errors.Is(err, scope.ErrFull))
		slot, err := p.b.Slots("match").Acquire()
		require.NoError(p.t, err)
		_, err = budget.Load(ctx, slot, func(s scope.Scope) (*int, error) {
			p.nest(slot.Name(), s, 5, 1)
			return new(int), nil
		})
		p.note("%s is full: %v", slot.Name(), errors.Is(err, scope.ErrFull))
		if round%2 == 1 {
			require.NoError(p.t, slot.Release(ctx))
		}
		lent, err := p.b.Lease(ctx)
		require.NoError(p.t, err)
		scratch := lent.Scratch(round % 2).Open("scratch")
		p.nest("scratch", scratch, 25, 3)
		if err := scratch.Close(); err != nil {
			require.ErrorIs(p.t, err, scope.ErrFull)
		}
		require.NoError(p.t, lent.Release())
		for range 3 {
			p.nest("frame", p.b.Frame(), 6, 0)
			if err := p.b.NextFrame(); err != nil {
				require.ErrorIs(p.t, err, scope.ErrFull)
			}
		}
	}
	r := p.b.Report()
	for _, g := range r.Arenas {
		p.note("%s: size %d used %d peak %d load_peak %d finalizers %d pools %d %d most open %v", g.Name,
			g.Size, g.Used, g.Peak, g.LoadPeak, g.Finalizers, g.PoolCap, g.PoolPeak, g.MostOpen)
	}
	p.note("all: size %d", r.Size)
}

// TestPinned runs the program in a block and in memory of the system: every build has the file's
// offsets.
func TestPinned(t *testing.T) {
	plan := budget.Plan{
		Name: "pinned",
		Regions: []budget.RegionPlan{{Name: "init", Size: 8 * budget.KiB}, {Name: "level", Size: 44 * budget.KiB},
			{Name: "match", Size: 24 * budget.KiB, Slots: 3}},
		Frame:   budget.FramePlan{Buffers: 2, Size: 12 * budget.KiB},
		Scratch: budget.ScratchPlan{Workers: 2, Size: 20*budget.KiB + 40},
		Limits:  budget.Limits{Scopes: 8, Pools: 6, Owned: 8, Labels: 4},
	}
	t.Run("block", func(t *testing.T) {
		need, err := plan.Need()
		require.NoError(t, err)
		b, err := budget.OpenIn(arena.NewBlock(int(need), arena_c.Edge), plan)
		require.NoError(t, err)
		pinned(t, b)
	})
	t.Run("system", func(t *testing.T) {
		b, err := budget.Open(plan)
		require.NoError(t, err)
		pinned(t, b)
	})
}

// pinned plays in b and compares with the file.
func pinned(t *testing.T, b *budget.Budget) {
	p := &pinning{t: t, b: b}
	p.play()
	_ = b.Close() // its error names the slots that weren't released
	if os.Getenv("UPFRONT_PIN") != "" && t.Name() == "TestPinned/block" {
		require.NoError(t, os.WriteFile("testdata/pinned.txt", []byte(strings.Join(p.lines, "\n")+"\n"), 0o644))
		return
	}
	want := strings.Split(strings.TrimSuffix(pinnedSteps, "\n"), "\n")
	for i, line := range p.lines {
		if i >= len(want) || want[i] != line {
			want = append(want, "")
			require.Equal(t, want[i], line, "line %d of testdata/pinned.txt is the first that differs. If offsets "+
				"or peaks have changed on purpose, UPFRONT_PIN=1 go test -run TestPinned ./tests/conformance writes "+
				"it anew", i+1)
		}
	}
	require.Len(t, p.lines, len(want))
}

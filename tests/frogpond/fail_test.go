package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/step"
)

// failing plays a server that gets an ErrFull somewhere and must go on.
type failing struct {
	o, visit options // visit plays each map once; o plays the last one again
	small    options // the options of the server that goes on
	// The needs of the small server by key of the plan. Temporary memory may need less.
	needs   map[string]uint64
	reached map[string]int // how often each key was full
	wentOn  int            // how often the small server fitted afterwards
}

func newFailing(t *testing.T) *failing {
	o := options{bots: 4, Options: game.Options{Log: os.DevNull, Workers: 1, Ticks: 3, Seed: 1,
		Maps: "E1M1,E1M3,MAP31,MAP07"}}
	if freedoom() {
		o.WADs = append(doom.InstalledWADs(), doom.Builtin)
	} else { // two files as well, since a scope owns each open file
		o.WADs, o.Maps = []string{madeWAD(t, 2), madeWAD(t, 3), doom.Builtin}, "MAP05,MAP06,MAP07"
	}
	f := &failing{o: o, visit: o, small: o, reached: map[string]int{}}
	// Making each request of every tick fail would take minutes.
	if step.Now() < step.Check {
		f.o.Ticks, f.o.bots, f.visit.Ticks = 1, 1, 0
		f.small.Ticks, f.small.bots = 1, 1
	}
	f.small.WADs, f.small.Maps = []string{doom.Builtin}, "MAP07"
	b := budgettest.Open(t, f.plan(t))
	require.NoError(t, f.goOn(t.Context(), b, nil))
	f.needs = needs(b.Report())
	return f
}

func madeWAD(t *testing.T, seed uint64) (name string) {
	name = filepath.Join(t.TempDir(), "made.wad")
	require.NoError(t, os.WriteFile(name, doom.BuiltinWAD(seed), 0o644))
	return name
}

func (f *failing) plan(t *testing.T) budget.Plan {
	plan, err := budget.ParsePlan(defaultPlan)
	require.NoError(t, err)
	plan.Pages.Prefault, plan.GoHeap = budget.Off, 0
	return plan
}

// needs returns the sizes and limits, by key, that a plan needs for the use in a report.
func needs(r budget.Report) map[string]uint64 {
	list := map[string]uint64{}
	for i, part := range r.Arenas {
		key := fmt.Sprintf("regions[%d].size", i)
		if part.Kind == "frame" || part.Kind == "scratch" {
			key = part.Kind + ".size"
		}
		most := part.MostOpen
		list[key] = max(list[key], (part.Peak+63)&^63) // temporary memory begins at a cache line
		for name, n := range map[string]int{"scopes": most.Scopes, "pools": most.Pools,
			"owned": most.Owned, "labels": most.Labels} {
			list["limits."+name] = max(list["limits."+name], uint64(n))
		}
	}
	return list
}

func planned(p budget.Plan, key string) uint64 {
	for i, r := range p.Regions {
		if key == fmt.Sprintf("regions[%d].size", i) {
			return r.Size
		}
	}
	return map[string]uint64{"frame.size": p.Frame.Size, "scratch.size": p.Scratch.Size,
		"limits.scopes": uint64(p.Limits.Scopes), "limits.pools": uint64(p.Limits.Pools),
		"limits.owned":  uint64(p.Limits.Owned),
		"limits.labels": uint64(p.Limits.Labels)}[key]
}

// run does all that a server does: boot, maps, a rewind of the systems, a map again. At the first
// ErrFull it stops and goes on with the small server.
func (f *failing) run(ctx context.Context, b *budget.Budget) error {
	s, err := game.Boot(ctx, f.o.Options, b)
	if err == nil {
		defer s.Stop()
		err = f.play(ctx, s)
	}
	if !errors.Is(err, budget.ErrFull) {
		return err
	}
	fits, key := true, ""
	var full *scope.FullError
	if errors.As(err, &full) { // otherwise a pool refused a chunk
		key = full.Key
		fits = planned(b.Plan(), key) >= f.needs[key]
		f.reached[key]++
	}
	switch after := f.goOn(ctx, b, s); {
	case after == nil:
		f.wentOn++
	case fits:
		return fmt.Errorf("%v; the server didn't go on: %v", err, after)
	case !errors.As(after, &full) || full.Key != key:
		return fmt.Errorf("%v; then another error: %v", err, after)
	}
	return err
}

func (f *failing) play(ctx context.Context, s *game.Server) error {
	if err := s.Seal(); err != nil {
		return err
	}
	for i := range s.Maps {
		if err := playOne(ctx, &f.visit, s, i); err != nil {
			return err
		}
	}
	if err := s.Budget.Region("systems").Rewind(ctx); err != nil {
		return err
	}
	if err := s.LoadSystems(ctx, f.o.Options); err != nil {
		return err
	}
	return playOne(ctx, &f.o, s, len(s.Maps)-1)
}

// goOn plays a small map in the same budget. It boots and loads the systems first if they are
// missing.
func (f *failing) goOn(ctx context.Context, b *budget.Budget, s *game.Server) (err error) {
	if s == nil {
		if s, err = game.Boot(ctx, f.small.Options, b); err != nil {
			return err
		}
		defer s.Stop()
	}
	if s.Systems == nil {
		if err := s.LoadSystems(ctx, f.small.Options); err != nil {
			return err
		}
	}
	return playOne(ctx, &f.small, s, len(s.Maps)-1) // the last map is built in
}

// playOne plays a map, rewinds the level, and returns the error that kept the map from being
// played.
func playOne(ctx context.Context, o *options, s *game.Server, i int) error {
	r := newResult(o)
	if err := errors.Join(r.play(ctx, o, s, s.Maps[i], io.Discard), r.close); err != nil {
		return err
	}
	if !r.IdentityOK {
		return errors.New("the walk doesn't cover the budget")
	}
	if used := s.Budget.Region("level").Report().Used; used != 0 {
		return fmt.Errorf("%d bytes are left in the level", used)
	}
	return r.Levels[0].err
}

func openFiles(t *testing.T) int {
	if runtime.GOOS != "linux" {
		return 0
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Log("open files are not counted:", err)
	}
	return len(entries)
}

// TestEachAllocationFails makes each allocation of a boot, of some maps and of a rewind of the
// systems fail in turn. Nothing leaks, and the server goes on in the same budget if the plan
// suffices for that.
func TestEachAllocationFails(t *testing.T) {
	if build == "asan" { // it takes minutes under an emulator
		step.Needs(t, step.Check)
	}
	f := newFailing(t)
	plan, files := f.plan(t), openFiles(t)
	runs := 0
	budgettest.FailEach(t, plan, func(b *budget.Budget) error {
		runs++
		return f.run(t.Context(), b)
	})
	assert.Equal(t, files, openFiles(t), "open files")
	for key, need := range f.needs {
		// The only label opened is the one for unlabeled memory.
		if need > 0 && key != "limits.labels" {
			assert.Positive(t, f.reached[key], key)
		}
	}
	assert.Positive(t, f.wentOn)
	t.Logf("%d runs; full: %v; the server went on %d times", runs, f.reached, f.wentOn)
}

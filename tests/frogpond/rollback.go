package main

import (
	"context"
	"fmt"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
)

// inputs holds the inputs of a game in the order of ticks, with one for each player.
type inputs struct {
	players int
	list    []game.Input
}

// next returns the players' inputs of a tick: the recorded ones, or else the bots' decisions,
// recorded if the list has capacity.
func (in *inputs) next(g *game.Game, tick int) []game.Input {
	if tick < in.ticks() {
		return in.at(tick)
	}
	list := g.Decide()
	if tick == in.ticks() && len(in.list)+len(list) <= cap(in.list) {
		in.list = append(in.list, list...)
	}
	return list
}

func (in *inputs) at(tick int) []game.Input {
	return in.list[tick*in.players : (tick+1)*in.players]
}

// ticks returns the number of recorded ticks.
func (in *inputs) ticks() int { return len(in.list) / max(1, in.players) }

// A wire delivers the inputs of a game late. The input of tick t comes at the start of tick t +
// lateness, where lateness is drawn for each player and tick. Until then, a guess lets the player
// go on as before.
type wire struct {
	real  inputs // hidden from the game until delivered
	used  inputs // delivered or guessed
	known []bool // whether each of used is delivered
	late  int    // ticks, at most
	seed  uint64
}

func newWire(real inputs, late int, seed uint64) *wire {
	n := len(real.list)
	return &wire{real, inputs{real.players, make([]game.Input, n)}, make([]bool, n), late, seed}
}

func (w *wire) lateness(tick, player int) int {
	return int(doom.Random(w.seed^0x1a7e, uint32(tick), uint32(player)) % uint64(w.late+1))
}

// deliver delivers the inputs that come at the start of tick now. It returns the first tick that
// was played with a wrong guess, or now if there is none.
func (w *wire) deliver(now int) (wrong int) {
	wrong = now
	for tick := max(0, now-w.late); tick <= min(now, w.real.ticks()-1); tick++ {
		for p := range w.real.players {
			if at := tick*w.real.players + p; tick+w.lateness(tick, p) <= now && !w.known[at] {
				if w.known[at] = true; w.used.list[at] != w.real.list[at] {
					w.used.list[at] = w.real.list[at]
					wrong = min(wrong, tick)
				}
			}
		}
	}
	return wrong
}

// guess returns the inputs of a tick, with guesses for those that aren't known. A guess lets the
// player go on, but makes no frog appear.
func (w *wire) guess(tick int) []game.Input {
	in := w.used.at(tick)
	for p := range in {
		if w.known[tick*w.used.players+p] {
			continue
		}
		in[p] = game.Input{}
		if tick > 0 {
			in[p] = w.used.at(tick - 1)[p].Guess()
		}
	}
	return in
}

// rollback plays a game again with late inputs: for each wrong guess it restores the state, and
// plays on from there.
func (row *LevelResult) rollback(ctx context.Context, o *options, s *game.Server, g *game.Game,
	real inputs, meter *meter) error {
	if err := s.Budget.SealStrict(); err != nil {
		return err
	}
	defer s.Budget.Seal()
	w, ring := newWire(real, o.rollback-1, o.Seed), g.Level.Snapshots
	rollbacks, again := 0, 0
	advance := func(tick int) error {
		if err := ring.Take(uint64(tick)); err != nil {
			return err
		}
		return g.StepWith(w.guess(tick))
	}
	for now := 0; now <= real.ticks()+w.late && ctx.Err() == nil; now++ {
		last := min(now, real.ticks())
		if wrong := w.deliver(now); wrong < last {
			rollbacks++
			if err := ring.Restore(ctx, uint64(wrong)); err != nil {
				return err
			}
			for tick := wrong; tick < last; tick++ {
				again++
				if err := advance(tick); err != nil {
					return err
				}
			}
		}
		if now < real.ticks() {
			if err := advance(now); err != nil {
				return err
			}
		}
		if now == 0 {
			meter.warm()
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	meter.stop(row, real.ticks())
	row.Rollbacks, row.Resimulated = measured(rollbacks), measured(again)
	return nil
}

// twice plays a tick two times from the same state, and compares the results.
func (row *LevelResult) twice(ctx context.Context, o *options, s *game.Server, g *game.Game,
	tick int, in []game.Input) error {
	ring := g.Level.Snapshots
	before := 3 * uint64(tick)
	if err := ring.Take(before); err != nil {
		return err
	}
	for after := before + 1; after <= before+2; after++ {
		if err := ring.Restore(ctx, before); err != nil {
			return err
		}
		if err := g.StepWith(in); err != nil {
			return err
		}
		o.plant.into(s.Budget, g)
		if err := ring.Take(after); err != nil {
			return err
		}
	}
	return row.compare(g, before+1, before+2, "after tick", tick)
}

// tellFirst puts the first difference into words, after play, which must not allocate.
func (row *LevelResult) tellFirst() {
	if row.Desyncs != nil && *row.Desyncs > 0 {
		row.FirstDifference = fmt.Sprintf("%s %d: %v", row.when, row.tick, row.first)
	}
}

// compare counts a pair of snapshots that differ, and keeps the first difference.
func (row *LevelResult) compare(g *game.Game, a, b uint64, when string, tick int) error {
	ring := g.Level.Snapshots
	first, err := ring.Hash(a)
	if err != nil {
		return err
	}
	second, err := ring.Hash(b)
	if err != nil || first == second {
		return err
	}
	if *row.Desyncs++; *row.Desyncs > 1 {
		return nil
	}
	row.first, _, err = ring.Diff(a, b)
	row.when, row.tick = when, tick
	return err
}

package client

import (
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// clock decides the tick of a client's inputs. It runs ahead of the server, so that most inputs
// arrive before their tick is played; for the few late inputs the server plays ticks again. It runs
// no further ahead, because the player would feel the delay. Each state has the ticks by which the
// newest input was early.
type clock struct {
	tick   uint32                      // of the newest input
	first  uint32                      // of the oldest input that is kept
	inputs [wire.InputsMost]wire.Input // by tick
	lead   uint32                      // ticks ahead of the newest state

	shift   int // ticks to skip, or, if negative, to wait
	samples int // states since the last shift
	least   int // the least Early of the samples
	settle  int // states to ignore until the shift has an effect
}

const (
	firstLead   = 8  // ticks ahead at the start: 0.23 s for the round trip
	leadMost    = 48 // ticks ahead; beyond, the clock starts again
	sampleCount = 32 // states before it judges
	settleCount = 40 // states after a shift
	latest      = 1  // the least Early that a shift aims for
	earlyMost   = 3  // the least Early without a shift, at most
	lateMost    = -2 // a least Early below this shifts at once
)

// start restarts the clock: the server is at tick, and inputs are to be lead ticks ahead.
func (c *clock) start(tick, lead uint32) {
	*c = clock{tick: tick + lead, first: tick + lead + 1, lead: lead}
}

// advance takes the input of the next tick. It fills the ticks that it skips, and drops the input
// while it waits.
func (c *clock) advance(in wire.Input) {
	switch {
	case c.shift < 0:
		c.shift++
		return
	case c.shift >= wire.InputsMost: // too many to send
		c.tick += uint32(c.shift)
		c.first = c.tick + 1
	default:
		for range c.shift { // as the server guesses them
			guess := c.inputs[c.tick%wire.InputsMost]
			guess.Flags &^= uint8(game.Spawn)
			c.add(guess)
		}
	}
	c.shift = 0
	c.add(in)
}

func (c *clock) add(in wire.Input) {
	c.tick++
	c.inputs[c.tick%wire.InputsMost] = in
}

// newest fills a list with the newest inputs, the newest first, and returns their number.
func (c *clock) newest(list []wire.Input) (n int) {
	kept := int(c.tick + 1 - c.first)
	for n = 0; n < min(len(list), kept); n++ {
		list[n] = c.inputs[(c.tick-uint32(n))%wire.InputsMost]
	}
	return n
}

// hear adjusts the clock to a state.
func (c *clock) hear(v *wire.View) {
	c.lead = c.tick - v.Tick
	if lead := int32(c.lead); lead > leadMost || lead < lateMost {
		c.start(v.Tick, firstLead)
	}
	if c.settle > 0 {
		c.settle--
		return
	}
	if v.Early == wire.NoInput {
		return
	}
	if c.samples++; c.samples == 1 || int(v.Early) < c.least {
		c.least = int(v.Early)
	}
	switch {
	case c.least < lateMost:
		c.adjust(latest - c.least)
	case c.samples < sampleCount:
	case c.least > earlyMost || c.least < latest:
		c.adjust(latest - c.least)
	default:
		c.samples = 0
	}
}

// adjust shifts the clock by ticks, and restarts the samples.
func (c *clock) adjust(ticks int) {
	c.shift = min(max(ticks, -leadMost), leadMost)
	c.samples, c.settle = 0, settleCount
}

package client

import (
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// clock is which tick a client's inputs are for. It runs ahead of the server, so that an input is
// mostly there when its tick is played, and no further, as the player would feel it: the few that
// come late the server plays again. It says with each state how early the newest input came.
type clock struct {
	tick   uint32                      // of the newest input
	first  uint32                      // of the oldest that is kept
	inputs [wire.InputsMost]wire.Input // by tick
	lead   uint32                      // ticks before the newest state

	shift   int // ticks to leap over, or when negative to wait for
	samples int // of how early inputs came since the last shift
	least   int // of them
	settle  int // samples to wait for until a shift shows
}

const (
	firstLead   = 8  // ticks ahead at the start: a quarter of a second there and back
	leadMost    = 48 // then server and client have lost each other
	sampleCount = 32 // states, until it judges
	settleCount = 40 // states, after a shift
	latest      = 1  // ticks that inputs come early in the worst case, after a shift
	earlyMost   = 3  // and before one
	lateMost    = -2 // and where the shift doesn't wait for more samples
)

// start begins anew: the server was at a tick, and the inputs are to be so far ahead.
func (c *clock) start(tick, lead uint32) {
	*c = clock{tick: tick + lead, first: tick + lead + 1, lead: lead}
}

// advance takes the input of the next tick; of more than one where it leaps, of none where it
// waits.
func (c *clock) advance(in wire.Input) {
	switch {
	case c.shift < 0:
		c.shift++
		return
	case c.shift >= wire.InputsMost: // those before would be too many to say
		c.tick += uint32(c.shift)
		c.first = c.tick + 1
	default:
		for range c.shift { // as the server guessed
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

// newest fills a list with the newest inputs, the newest first, and says how many there are.
func (c *clock) newest(list []wire.Input) (n int) {
	kept := int(c.tick + 1 - c.first)
	for n = 0; n < min(len(list), kept); n++ {
		list[n] = c.inputs[(c.tick-uint32(n))%wire.InputsMost]
	}
	return n
}

// hear takes from a state how early the newest input came.
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

// adjust leaps or waits, and looks at how early inputs come when that shows.
func (c *clock) adjust(ticks int) {
	c.shift = min(max(ticks, -leadMost), leadMost)
	c.samples, c.settle = 0, settleCount
}

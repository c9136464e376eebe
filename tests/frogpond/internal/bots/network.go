package bots

import (
	"math/rand/v2"
	"time"
)

// Network describes one direction between a bot and the server. Percentages are of packets.
type Network struct {
	Loss, Duplicate, Reorder float64
	Jitter                   time.Duration // each packet is delayed by a random time up to this
}

// heldBack is the delay of a reordered packet: two ticks, so that later packets overtake it.
const heldBack = 2 * tickTime

// way is one direction between a bot and the server. Packets wait here until they are due. The same
// seed, packets and times give the same result.
type way struct {
	network Network
	random  *rand.Rand
	flying  []packet // the capacity beyond the length keeps packets' memory for reuse
}

type packet struct {
	due   time.Duration
	bytes []byte
}

func newWay(network Network, seed, number uint64) way {
	return way{network: network, random: rand.New(rand.NewPCG(seed, number))}
}

// send puts a packet on its way, drops it, or sends it twice.
func (w *way) send(bytes []byte, now time.Duration) {
	if w.happens(w.network.Loss) {
		return
	}
	w.fly(bytes, now)
	if w.happens(w.network.Duplicate) {
		w.fly(bytes, now)
	}
}

// happens reports whether an event of a rate happens. It draws a number even for 0 percent, so that
// one rate doesn't change another's draws.
func (w *way) happens(percent float64) bool { return w.random.Float64()*100 < percent }

func (w *way) fly(bytes []byte, now time.Duration) {
	due := now + time.Duration(w.random.Float64()*float64(w.network.Jitter))
	if w.happens(w.network.Reorder) {
		due += heldBack
	}
	n := len(w.flying)
	if n < cap(w.flying) {
		w.flying = w.flying[:n+1]
	} else {
		w.flying = append(w.flying, packet{})
	}
	p := &w.flying[n]
	p.due, p.bytes = due, append(p.bytes[:0], bytes...)
}

// next returns the time at which the next packet is due, but at most later.
func (w *way) next(later time.Duration) time.Duration {
	for i := range w.flying {
		later = min(later, w.flying[i].due)
	}
	return later
}

// arrive returns the earliest packet that is due by now, with its time, or nil. Its bytes are valid
// until the next send.
func (w *way) arrive(now time.Duration) (bytes []byte, at time.Duration) {
	first := -1
	for i := range w.flying {
		if due := w.flying[i].due; due <= now && (first < 0 || due < w.flying[first].due) {
			first = i
		}
	}
	if first < 0 {
		return nil, 0
	}
	last := len(w.flying) - 1
	p := w.flying[first]
	copy(w.flying[first:], w.flying[first+1:]) // equal times keep the order
	w.flying[last] = p
	w.flying = w.flying[:last]
	return p.bytes, p.due
}

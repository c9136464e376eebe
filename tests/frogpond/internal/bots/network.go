package bots

import (
	"math/rand/v2"
	"time"
)

// Network is how badly the way from or to a bot is. Percentages are of packets.
type Network struct {
	Loss, Duplicate, Reorder float64
	Jitter                   time.Duration // each packet is late by a draw from 0 to this
}

// heldBack is how much later a reordered packet is: two ticks, so that others overtake it.
const heldBack = 2 * tickTime

// way is one direction between a bot and the server. Packets that are under way wait here until
// they are due. It is deterministic: the same seed, packets and times come to the same.
type way struct {
	network Network
	random  *rand.Rand
	flying  []packet // those after the last, up to the capacity, keep their bytes' memory
}

// packet is a datagram under way.
type packet struct {
	due   time.Duration
	bytes []byte
}

func newWay(network Network, seed, number uint64) way {
	return way{network: network, random: rand.New(rand.NewPCG(seed, number))}
}

// send puts a packet on its way, not at all, or twice.
func (w *way) send(bytes []byte, now time.Duration) {
	if w.happens(w.network.Loss) {
		return
	}
	w.fly(bytes, now)
	if w.happens(w.network.Duplicate) {
		w.fly(bytes, now)
	}
}

// happens draws even when nothing can happen, so that one rate doesn't change another's draws.
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

// next is when the next packet is due; later when there is none before that.
func (w *way) next(later time.Duration) time.Duration {
	for i := range w.flying {
		later = min(later, w.flying[i].due)
	}
	return later
}

// arrive gives the packet that is due first, if one is due by now. Its bytes are good until the
// next one is sent.
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
	copy(w.flying[first:], w.flying[first+1:]) // of two that are due at once the one sent first goes
	w.flying[last] = p
	w.flying = w.flying[:last]
	return p.bytes, p.due
}

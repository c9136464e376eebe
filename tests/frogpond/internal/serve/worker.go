package serve

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/udp"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// worker plays some of the rooms in turn, with a thread and scratch arenas of its own.
type worker struct {
	s     *Server
	index int // of its scratch arenas
	crew  *game.Crew
	rooms []*room
	out   *udp.Batch
	seen  []game.Seen
	mac   wire.Mac
	clock cpuClock
	alive clock // the start of its last tick

	wall, cpu histogram // of ticks, in microseconds
	cpuTotal  uint64    // nanoseconds

	ticks, lateTicks, skipped, rollbacks, again uint64
	early, late, foreign                        uint64 // inputs; a foreign one is of another map
	// Views that didn't fit in a packet, or in a view's list.
	cut, crowded                  uint64
	sent, bytes, timedOut, played uint64 // played counts each tick of each player
}

var (
	seenMaker = scope.Plain[game.Seen]()
	wordMaker = scope.Plain[uint32]()
)

// seenMost is the number of objects of a map that viewers see. If a map has more, the last sectors
// are missing.
const seenMost = 2048

// sendBatch is the most datagrams sent with one call.
const sendBatch = 64

func newWorker(s *Server, in scope.Scope, index int) *worker {
	return &worker{s: s, index: index, crew: game.Alone(s.b, index), out: udp.NewBatch(in, sendBatch, wire.PacketMost),
		seen: seenMaker.SliceCap(in, 0, seenMost), wall: newHistogram(in), cpu: newHistogram(in)}
}

// loop plays until the server stops. The worker has a thread of its own, so that the thread's CPU
// time is the ticks'.
func (w *worker) loop() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		r := w.first()
		for now := w.s.now(); now < r.due; now = w.s.now() {
			if w.s.stopping.Load() {
				return
			}
			time.Sleep(r.due - now)
		}
		if w.s.stopping.Load() {
			return
		}
		w.play(r)
	}
}

// first returns the room that has been due for longest. So a room that fell behind while others
// skipped ticks catches up.
func (w *worker) first() *room {
	first := w.rooms[0]
	for _, r := range w.rooms[1:] {
		if r.due < first.due {
			first = r
		}
	}
	return first
}

// play plays and measures a tick of a room. A tick is late if it ends after the next one is due. A
// room more than half a second behind skips ticks, so that it doesn't hurry for ever.
func (w *worker) play(r *room) {
	from, cpu := w.s.now(), w.clock.now()
	w.alive.Store(from)
	played := r.tick(w, from)
	r.due += tickTime
	to := w.s.now()
	if !played {
		return
	}
	w.ticks++
	w.wall.add(to - from)
	cpu = w.clock.now() - cpu
	w.cpu.add(cpu)
	w.cpuTotal += uint64(cpu)
	if to > r.due {
		w.lateTicks++
		w.s.flight.dump(r.late)
	}
	for to > r.due+maxBehind {
		r.due += tickTime
		w.skipped++
	}
}

// clock is a time that another goroutine may read.
type clock struct{ atomic.Int64 }

func (c *clock) Store(d time.Duration) { c.Int64.Store(int64(d)) }
func (c *clock) Load() time.Duration   { return time.Duration(c.Int64.Load()) }

const (
	tickTime  = time.Second / 35
	maxBehind = time.Second / 2
)

// packet returns the buffer for the next datagram to a player.
func (w *worker) packet(s *seat) []byte {
	buffer := w.out.Next(&s.address)
	if buffer == nil {
		w.flush()
		buffer = w.out.Next(&s.address)
	}
	return buffer
}

// send seals a packet, and sends it with the next batch.
func (w *worker) send(s *seat, packet []byte) {
	w.mac.Seal(&s.key, packet)
	w.out.Add(len(packet))
	w.sent++
	w.bytes += uint64(len(packet))
}

func (w *worker) flush() {
	if w.out.Len() > 0 {
		if err := w.s.socket.Send(w.out); err != nil {
			w.s.broken(err)
		}
	}
}

// histogram counts durations by microsecond. Durations of histogramEnd or more share the last
// count.
type histogram struct {
	counts  []uint32
	longest time.Duration
}

const histogramEnd = 1 << 15 // longer than a tick

func newHistogram(s scope.Scope) histogram {
	return histogram{counts: wordMaker.Slice(s, histogramEnd)}
}

func (h *histogram) add(d time.Duration) {
	h.counts[max(0, min(d.Microseconds(), histogramEnd-1))]++
	h.longest = max(h.longest, d)
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.longest = max(h.longest, other.longest)
}

// at returns the duration, in microseconds, that this many thousandths of the durations don't
// exceed.
func (h *histogram) at(thousandths uint64) uint64 {
	var all, sum uint64
	for _, n := range h.counts {
		all += uint64(n)
	}
	for i, n := range h.counts {
		if sum += uint64(n); n > 0 && sum*1000 >= all*thousandths {
			return uint64(i)
		}
	}
	return 0
}

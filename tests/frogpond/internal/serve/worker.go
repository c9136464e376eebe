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

// worker plays some of the rooms, one after the other, on a thread and a scratch of its own.
type worker struct {
	s     *Server
	index int // of its scratch
	crew  *game.Crew
	rooms []*room
	out   *udp.Batch
	seen  []game.Seen
	mac   wire.Mac
	clock cpuClock
	alive clock // when it began a tick last

	wall, cpu histogram // of ticks, microseconds
	cpuTotal  uint64    // nanoseconds

	// What happened.
	ticks, lateTicks, skipped, rollbacks, again uint64
	early, late, foreign                        uint64 // inputs; foreign: of another map
	cut, crowded                                uint64 // views that a packet, or the list, was too small for
	sent, bytes, timedOut, played               uint64 // played: a player a tick
}

var seenMaker = scope.Plain[game.Seen]()

// seenMost is what there may be to see of a map: of more, sectors come last.
const seenMost = 2048

// sendBatch is how many datagrams go out with one call.
const sendBatch = 64

func newWorker(s *Server, in scope.Scope, index int) *worker {
	return &worker{s: s, index: index, crew: game.Alone(s.b, index), out: udp.NewBatch(in, sendBatch, wire.PacketMost),
		seen: seenMaker.SliceCap(in, 0, seenMost), wall: newHistogram(in), cpu: newHistogram(in)}
}

// loop plays until the server stops. The thread is the worker's own, so that its time is the ticks'.
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

// first is the room that has been due for longest: so one that fell behind the others, as it rested
// while they let ticks be, comes up with them.
func (w *worker) first() *room {
	first := w.rooms[0]
	for _, r := range w.rooms[1:] {
		if r.due < first.due {
			first = r
		}
	}
	return first
}

// play is a tick of a room, with what it took. A tick that isn't over when the next is due is late;
// after half a second the room lets ticks be, so that it doesn't hurry for ever.
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

// packet is the buffer for the next datagram to a player.
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

// histogram counts durations by microsecond; those of its end or longer together.
type histogram struct {
	counts  []uint32
	longest time.Duration
}

const histogramEnd = 1 << 15 // more than the time of a tick

func newHistogram(s scope.Scope) histogram {
	return histogram{counts: wordMaker.Slice(s, histogramEnd)}
}

func (h *histogram) add(d time.Duration) {
	h.counts[max(0, min(d.Microseconds(), histogramEnd-1))]++
	h.longest = max(h.longest, d)
}

// merge adds another.
func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.longest = max(h.longest, other.longest)
}

// at is the duration, in microseconds, that so many of a thousand didn't pass.
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

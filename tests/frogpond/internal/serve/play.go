package serve

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/disk"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// play is a map in a room. The loader makes it in a slot of its own, and ends it there; the room's
// worker plays it.
type play struct {
	region  budget.Region
	level   *game.Level
	game    *game.Game
	number  uint32 // of the room's maps
	seed    uint64
	title   wire.MapName
	tick    uint32 // that is played next
	resumed bool

	record *disk.Record // or nil
	inputs *inputLog    // on their way to it
	logged uint32       // the first tick that isn't in there
	cut    bool         // the worker had no room for a tick: the record ends there
	failed bool         // the disk had none
	over   atomic.Bool  // the worker is done with it
	closed atomic.Bool  // and the keeper
}

// epoch is what players call it.
func (p *play) epoch() uint8 { return uint8(p.number) }

// restore puts a state in place that was saved.
func (p *play) restore(from *saved) error {
	ring := p.level.Snapshots
	number, err := ring.Read(bytes.NewReader(from.file))
	if err == nil {
		err = ring.Restore(context.Background(), number)
	}
	if tick := p.level.Room.Tick; err == nil && (uint64(tick) != number || tick != from.head.Tick) {
		err = fmt.Errorf("a save of tick %d has a state of tick %d", from.head.Tick, tick)
	}
	p.tick, p.logged, p.resumed = uint32(number), uint32(number), true
	return err
}

// file appends the state as it is now.
func (p *play) file(to []byte) ([]byte, error) {
	ring := p.level.Snapshots
	if err := ring.Take(uint64(p.tick)); err != nil {
		return nil, err
	}
	return ring.AppendFile(to, uint64(p.tick))
}

// inputLog is the inputs of ticks that nobody plays again, on their way to a file: a worker puts
// them in, the keeper takes them out, and neither waits.
type inputLog struct {
	bytes   []byte        // of ticks, in turn, each as a record has it
	size    int           // of a tick
	in, out atomic.Uint32 // ticks that ever were
}

// logTicks is how many ticks the keeper may be behind: seven seconds.
const logTicks = 256

// add says whether there was room.
func (l *inputLog) add(list []game.Input) bool {
	in := l.in.Load()
	if in-l.out.Load() == logTicks {
		return false
	}
	copy(l.bytes[int(in%logTicks)*l.size:], bytesOf(list))
	l.in.Add(1)
	return true
}

// some is the oldest ticks, as far as they lie in one piece.
func (l *inputLog) some() []byte {
	out := l.out.Load()
	first := out % logTicks
	count := min(l.in.Load()-out, logTicks-first)
	return l.bytes[int(first)*l.size : int(first+count)*l.size]
}

func (l *inputLog) done(ticks []byte) { l.out.Add(uint32(len(ticks) / l.size)) }

// reset is for another map. Nobody reads or writes it.
func (l *inputLog) reset() {
	l.in.Store(0)
	l.out.Store(0)
}

package serve

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/disk"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// play is a map in a room. The loader loads the map into a slot of its own, the room's worker plays
// it, and the loader releases the slot.
type play struct {
	region  budget.Region
	level   *game.Level
	game    *game.Game
	number  uint32 // counts the room's maps
	seed    uint64
	title   wire.MapName
	tick    uint32 // the next to play
	resumed bool   // from a save

	checkpoint *save.Checkpoint // or nil
	isOutlived bool             // from a checkpoint

	record *disk.Record // or nil
	inputs *inputLog    // inputs on their way to record
	logged uint32       // the first tick that isn't in inputs yet
	cut    bool         // inputs was full: the record ends there
	failed bool         // the disk refused a write
	over   atomic.Bool  // the worker has finished with the play
	closed atomic.Bool  // the keeper has finished with it
}

// epoch returns the play's number in packets, where it has 8 bits.
func (p *play) epoch() uint8 { return uint8(p.number) }

// restore makes the state that of the file of a save.
func (p *play) restore(saved uint32, file []byte) error {
	ring := p.level.Snapshots
	number, err := ring.Read(bytes.NewReader(file))
	if err == nil {
		err = ring.Restore(context.Background(), number)
	}
	if tick := p.level.Room.Tick; err == nil && (uint64(tick) != number || tick != saved) {
		err = fmt.Errorf("a save of tick %d has a state of tick %d", saved, tick)
	}
	p.tick, p.logged, p.resumed = uint32(number), uint32(number), true
	return err
}

// file appends a save file of the current state to a slice.
func (p *play) file(to []byte) ([]byte, error) {
	ring := p.level.Snapshots
	if err := ring.Take(uint64(p.tick)); err != nil {
		return nil, err
	}
	return ring.AppendFile(to, uint64(p.tick))
}

// inputLog is a queue of the inputs of final ticks on their way to a file. A worker puts them in,
// the keeper takes them out, and neither waits.
type inputLog struct {
	bytes   []byte        // a ring of ticks, each in the format of a record
	size    int           // of a tick
	in, out atomic.Uint32 // ticks in total
}

// logTicks is the number of ticks in the queue: seven seconds.
const logTicks = 256

// add appends the inputs of a tick. It returns false if the queue is full.
func (l *inputLog) add(list []game.Input) bool {
	in := l.in.Load()
	if in-l.out.Load() == logTicks {
		return false
	}
	copy(l.bytes[int(in%logTicks)*l.size:], bytesOf(list))
	l.in.Add(1)
	return true
}

// some returns the bytes of the oldest ticks, up to the end of the ring.
func (l *inputLog) some() []byte {
	out := l.out.Load()
	first := out % logTicks
	count := min(l.in.Load()-out, logTicks-first)
	return l.bytes[int(first)*l.size : int(first+count)*l.size]
}

func (l *inputLog) done(ticks []byte) { l.out.Add(uint32(len(ticks) / l.size)) }

// reset empties the queue for another map. Neither goroutine may use it meanwhile.
func (l *inputLog) reset() {
	l.in.Store(0)
	l.out.Store(0)
}

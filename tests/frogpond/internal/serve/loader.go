package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/disk"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// loader loads the rooms' next maps, each into a free slot, and releases the slots of maps that
// ended. Loading is slow and allocates on the Go heap, so no tick waits for it.
type loader struct {
	s     *Server
	crew  *game.Crew
	slots *budget.Slots
	file  []byte // memory for one

	tooLarge []string // maps that didn't fit, each reported once
}

// nap is the sleep between polls of goroutines with occasional work. No other goroutine waits for
// them, and they need no wake-up.
const nap = 5 * time.Millisecond

func (l *loader) loop() {
	for !l.s.stopping.Load() {
		for _, r := range l.s.rooms {
			l.look(r)
		}
		time.Sleep(nap)
	}
}

func (l *loader) look(r *room) {
	if p := r.gone.Load(); p != nil && p.closed.Load() {
		l.s.say(p.region.Release(context.Background()))
		r.gone.Store(nil)
	}
	if r.wanted.Load() && r.next.Load() == nil && r.gone.Load() == nil && !l.s.closing.Load() &&
		l.s.now() >= r.again && l.slots.Available() > 0 { // else others use all
		r.next.Store(l.next(r))
	}
}

// next loads and returns a room's next map, without the maps that fail to load. If all fail, it
// returns nil, and the room tries again a second later.
func (l *loader) next(r *room) *play {
	for range l.s.game.Maps {
		number := r.maps
		r.maps++
		m := l.s.game.Maps[(r.number+int(number))%len(l.s.game.Maps)]
		p, err := l.load(r, m, number, nil)
		if err == nil {
			return p
		}
		l.s.unloaded.Add(1)
		if errors.Is(err, budget.ErrFull) && !errors.Is(err, budget.ErrNoSlot) {
			if slices.Contains(l.tooLarge, m.Name) {
				continue
			}
			l.tooLarge = append(l.tooLarge, m.Name)
		}
		l.s.say(fmt.Errorf("room %d: %s isn't played: %w", r.number, m.Name, err))
	}
	r.again = l.s.now() + time.Second
	return nil
}

// first returns a room's first map: the saved one, or the next that fits.
func (l *loader) first(r *room) (p *play, err error) {
	if l.s.o.Inputs != "" { // so that no record is overwritten
		if r.maps, err = disk.NextEpoch(l.s.o.Inputs, uint32(r.number)); err != nil {
			return nil, err
		}
	}
	if r.isOutlived {
		if p, err = l.outlived(r); err == nil {
			return p, nil
		}
		if l.s.server != nil { // the other server plays on
			return nil, err
		}
		l.s.say(err) // the room begins with a new game
	}
	if p, err = l.resume(r); p == nil && err == nil {
		if p = l.next(r); p == nil {
			err = fmt.Errorf("room %d: none of the maps fits into its slot", r.number)
		}
	}
	return p, err
}

// resume loads and returns a room's saved map, or returns nil without a save.
func (l *loader) resume(r *room) (*play, error) {
	if l.s.saves == nil {
		return nil, nil
	}
	h, file, found, err := l.s.saves.Read(r.number)
	if err != nil || !found {
		return nil, err
	}
	p, err := l.loadNamed(r, wire.MapName(h.Map), max(h.Epoch+1, r.maps), func(p *play) ([]byte, error) {
		if err := p.level.IsOf(h.MapSum); err != nil {
			return nil, err
		}
		p.seed = h.Seed
		return file, p.restore(h.Tick, file)
	})
	if err != nil {
		return nil, fmt.Errorf("room %d: its save: %w", r.number, err)
	}
	for i := range min(len(h.Names), l.s.o.Players) { // players that join by these names go on
		r.seats[i].name = h.Names[i]
		l.s.net.roomSessions(r.number)[i].name = h.Names[i]
	}
	return p, nil
}

// loadNamed loads the map of that name as the room's map of that number. Each start of a server is
// another number, and so another epoch.
func (l *loader) loadNamed(r *room, name wire.MapName, number uint32, fill func(p *play) ([]byte, error)) (
	*play, error) {
	m, err := l.named(name)
	if err != nil {
		return nil, err
	}
	r.maps = number + 1
	return l.load(r, m, number, fill)
}

func (l *loader) named(name wire.MapName) (m doom.Map, err error) {
	at := slices.IndexFunc(l.s.game.Maps, func(m doom.Map) bool { return m.Name == string(name.Text()) })
	if at < 0 {
		return m, fmt.Errorf("it is of %s, which isn't among the maps", name.Text())
	}
	return l.s.game.Maps[at], nil
}

// level loads a map, or returns the room's spare if it is of that map.
func (l *loader) level(r *room, m doom.Map) (p *play, err error) {
	title := wire.MakeMapName(m.Name)
	p, r.spare = r.spare, nil
	switch {
	case p != nil && p.title == title:
		return p, nil
	case p != nil:
		err = p.region.Release(context.Background())
	}
	p = &play{title: title}
	if err == nil {
		p.region, err = l.slots.Acquire()
	}
	if err != nil {
		return nil, err
	}
	p.level, err = l.s.game.LoadInto(context.Background(), p.region, l.crew, m, l.s.o.Players)
	if err != nil {
		return nil, errors.Join(err, p.region.Release(context.Background()))
	}
	return p, nil
}

// load loads a map. fill makes its state that of an earlier game, and returns the state as a file
// for the record. Without fill, a new game begins.
func (l *loader) load(r *room, m doom.Map, number uint32, fill func(p *play) ([]byte, error)) (_ *play, err error) {
	p, err := l.level(r, m)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.region.Release(context.Background()))
		}
	}()
	p.number, p.seed = number, l.s.seed(r.number, number)
	if l.s.checkpoints != nil {
		if p.checkpoint, err = l.s.checkpoints.Attach(r.number, p.level.Snapshots); err != nil {
			return nil, err
		}
	}
	if p.game, err = l.s.game.BeginEmpty(p.level, p.seed); err != nil {
		return nil, err
	}
	var state []byte
	if fill != nil {
		if state, err = fill(p); err != nil {
			return nil, err
		}
	}
	if l.s.saves != nil { // the first file of a ring allocates on the Go heap, too slow for a tick
		if l.file, err = p.file(l.file[:0]); err != nil {
			return nil, err
		}
	}
	return p, l.record(r, p, state)
}

// record begins the record of a map's inputs, if the options ask for one. If the disk refuses it
// during play, the map is played without.
func (l *loader) record(r *room, p *play, state []byte) (err error) {
	if l.s.o.Inputs == "" {
		return nil
	}
	p.inputs = &r.logs[r.free] // the map before the last has ended, and its record is closed
	r.free = 1 - r.free
	p.inputs.reset()
	p.record, err = disk.CreateRecord(l.s.o.Inputs, &disk.RecordHead{Room: uint32(r.number), Epoch: p.number,
		Seed: p.seed, Players: uint32(l.s.o.Players), FirstTick: p.tick, Map: p.title,
		MapSum: p.level.Sum}, state)
	if err != nil && l.s.serving.Load() { // at the start, the error ends the server instead
		l.s.unrecorded.Add(1)
		l.s.keeper.check(err)
		return nil
	}
	return err
}

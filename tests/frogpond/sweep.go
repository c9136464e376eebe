package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/sweep"
)

// specials counts a map's special lines and sectors, and how many have a known type. After a sweep,
// Acted and SectorsActed keep the numbers that the sweep proved.
func (r *Result) specials(row *LevelResult, level *game.Level) {
	var lines, sectors, acted, sectorsActed int
	for i := range level.Lines {
		special := level.Lines[i].Special
		if special == 0 {
			continue
		}
		lines++
		if doom.SpecialOf(special).Action == doom.NoAction {
			r.Unsupported[int(special)]++
		} else {
			acted++
		}
	}
	for i := range level.Sectors {
		if special := level.Sectors[i].Special; special != 0 {
			sectors++
			if doom.SectorSpecialOf(special) != (doom.SectorSpecial{}) {
				sectorsActed++
			}
		}
	}
	row.Specials, row.SpecialSectors = &lines, &sectors
	if row.Acted == nil {
		row.Acted, row.SectorsActed = &acted, &sectorsActed
	}
}

// sweep fires each special line of a map once, each on a fresh load. It counts the lines and
// sectors whose effect is that of package sweep's table. It leaves the region level empty, even
// after an error.
func (r *Result) sweep(ctx context.Context, row *LevelResult, s *game.Server, m doom.Map) (
	err error) {
	region := s.Budget.Region("level")
	defer func() { err = errors.Join(err, region.Rewind(context.WithoutCancel(ctx))) }()
	raw, err := readMap(m)
	if err != nil {
		return err
	}
	load := func() (sweep.World, error) {
		if err := region.Rewind(ctx); err != nil {
			return nil, err
		}
		level, err := s.Load(ctx, m, 1)
		if err != nil {
			return nil, err
		}
		g, err := s.Begin(level, r.options.Seed)
		if err != nil {
			return nil, err
		}
		level.Players.Put(level.Players.At(0)) // frees the only place
		return swept{g.Probe(), level}, nil
	}
	lines, err := sweep.Lines(raw, load)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	sectors, err := sweep.Sectors(raw, load)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	acted := 0
	for _, n := range lines.Lines {
		acted += n
	}
	row.Acted, row.Idle, row.SectorsActed = &acted, &lines.Idle, &sectors.Sectors
	for _, wrong := range append(lines.Wrong, sectors.Wrong...) {
		r.Wrong = append(r.Wrong, m.Name+": "+wrong)
	}
	*r.FlowWrong = len(r.Wrong)
	return nil
}

// readMap reads the map again, from its file, for package sweep.
func readMap(m doom.Map) (*sweep.Map, error) {
	var failed error
	raw, err := sweep.Parse(func(name string) []byte {
		lump, err := m.Lump(name)
		if err != nil {
			failed = err
		}
		return lump
	})
	if failed != nil {
		return nil, failed
	}
	return raw, err
}

// swept implements sweep.World with a loaded level.
type swept struct {
	*game.Probe
	level *game.Level
}

// Fire acts on a line as a body does.
func (w swept) Fire(line int, by sweep.By) {
	trigger := map[sweep.Kind]doom.Trigger{
		sweep.Walk: doom.Walked, sweep.Use: doom.Used, sweep.Shoot: doom.Shot}[by.Kind]
	var keys doom.Key
	for have, key := range map[sweep.Keys]doom.Key{
		sweep.Blue: doom.Blue, sweep.Yellow: doom.Yellow, sweep.Red: doom.Red} {
		if by.Keys&have != 0 {
			keys |= key
		}
	}
	w.Probe.Fire(line, trigger, !by.Back, by.Monster, keys)
}

// Carried lets a player stand at a place for a tick.
func (w swept) Carried(sector, x, y int) (dx, dy int32) {
	p := w.level.Players.Get()
	defer w.level.Players.Put(p)
	from := doom.Point{X: int32(x) << doom.UnitBits, Y: int32(y) << doom.UnitBits}
	p.At, p.Sector, p.Health = from, uint16(sector), math.MaxInt32 // no damage may kill it
	w.Tick()
	return p.At.X - from.X, p.At.Y - from.Y
}

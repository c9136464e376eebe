package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
)

const tickTime = time.Second / 35

// badMap is the error of a map that can't be loaded. The program plays the other maps.
type badMap struct{ error }

func (e badMap) Unwrap() error { return e.error }

// ofMap returns err as a badMap, unless it is nil or a cancellation.
func ofMap(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return badMap{err}
}

// play loads a map, plays it, and rewinds the level. A map that doesn't fit or can't be loaded is
// listed as not run. That is no error: the region is empty again, and the next map can be played.
func (r *Result) play(ctx context.Context, o *options, s *game.Server, m doom.Map,
	stderr io.Writer) error {
	row := LevelResult{Name: m.Name}
	r.recording.Mark(m.Name)
	var err error
	if o.sweep {
		err = ofMap(r.sweep(ctx, &row, s, m))
	}
	region := s.Budget.Region("level")
	finalizers := region.Report().Finalizers
	if err == nil {
		err = r.playLoaded(ctx, o, s, m, &row)
	}
	var bad badMap
	if err != nil && !errors.Is(err, budget.ErrFull) && !errors.As(err, &bad) {
		return err
	}
	if err != nil {
		row = LevelResult{Name: m.Name, Error: err.Error(), err: err}
		fmt.Fprintf(stderr, "frogpond: %s: not run: %v\n", m.Name, err)
	}
	// Without the cancellation, so that finalizers also run after Ctrl-C. A finalizer's error, such
	// as a log on a full disk, ends no game; the first one is reported at the end.
	if err := region.Rewind(context.WithoutCancel(ctx)); err != nil {
		r.close = cmp.Or(r.close, fmt.Errorf("%s: %w", m.Name, err))
	}
	r.check(s.Budget)
	if row.Error == "" {
		row.FinalizersRun = measured(region.Report().Finalizers - finalizers)
	}
	r.Levels = append(r.Levels, row)
	return nil
}

// playLoaded loads a map and plays it. The map stays loaded.
func (r *Result) playLoaded(ctx context.Context, o *options, s *game.Server, m doom.Map,
	row *LevelResult) error {
	start := time.Now()
	level, err := s.Load(ctx, m, o.bots)
	row.LoadMicros = measured(time.Since(start).Microseconds())
	r.check(s.Budget)
	if err != nil {
		return ofMap(err)
	}
	r.specials(row, level)
	g, err := s.Begin(level, o.Seed)
	if err != nil {
		return err
	}
	defer row.tellFirst()
	in, err := o.inputs(level)
	if err != nil {
		return err
	}
	err = row.play(ctx, o, s, g, &in)
	r.Report = s.Budget.Report()
	err = errors.Join(err, r.pictures.look(s.Budget))
	if err != nil || o.rollback == 0 || ctx.Err() != nil {
		return err
	}
	var end bytes.Buffer
	if err := level.Snapshots.Write(&end, uint64(*row.Ticks)); err != nil {
		return err
	}
	err = row.playLate(ctx, o, s, m, in, &end)
	if errors.Is(err, context.Canceled) { // the first play is complete
		return nil
	}
	return err
}

// playLate plays a map again with late inputs, and compares the last states.
func (row *LevelResult) playLate(ctx context.Context, o *options, s *game.Server, m doom.Map,
	in inputs, end io.Reader) error {
	level, err := s.Load(ctx, m, o.bots)
	if err != nil {
		return err
	}
	g, err := s.Begin(level, o.Seed)
	if err != nil {
		return err
	}
	meter := newMeter(s.Budget)
	if err := row.rollback(ctx, o, s, g, in, meter); err != nil {
		return err
	}
	straight, err := level.Snapshots.Read(end)
	if err != nil {
		return err
	}
	late := straight + 1
	if err := level.Snapshots.Take(late); err != nil {
		return err
	}
	row.Desyncs = measured(0)
	return row.compare(g, straight, late, "without and with late inputs, after tick", in.ticks())
}

// play runs the ticks of a loaded map and fills the row.
func (row *LevelResult) play(ctx context.Context, o *options, s *game.Server, g *game.Game,
	in *inputs) error {
	runtime.GC() // collects the load's garbage now, not during play
	meter := newMeter(s.Budget)
	if o.syncTest {
		row.Desyncs = measured(0)
	}
	from, err := o.begin(ctx, g)
	if err != nil {
		return err
	}
	ticks, err := row.playTicks(ctx, o, s, g, in, from, meter)
	if err != nil {
		return err
	}
	meter.stop(row, ticks-from)
	room := g.Level.Room
	row.FlowErrors, row.FlowNowhere = measured(room.Errors), measured(room.Nowhere)
	row.FlowRefused, row.StateBytes = measured(room.Refused), measured(g.Level.StateBytes)
	row.SnapshotBytes = measured(g.Level.Snapshots.Size())
	report := s.Budget.Region("level").Report()
	row.Ticks, row.Hash = measured(ticks), measured(fmt.Sprintf("%016x", uint64(g.Hash())))
	row.Used, row.Peak = measured(report.Used), measured(report.LoadPeak)
	row.PoolCapacity, row.PoolPeak = measured(g.Level.Frogs.Cap()), measured(g.Level.Frogs.Peak())
	if o.durations != "" {
		if err := writeDurations(o.durations, s.Systems.Durations[:ticks]); err != nil {
			return err
		}
	}
	row.TickTime = tickTimes(s.Systems.Durations[from:ticks])
	hash, err := o.end(g, in, ticks)
	row.StateHash = measured(fmt.Sprintf("%016x", hash))
	return err
}

func writeDurations(name string, durations []uint32) error {
	var text []byte
	for _, d := range durations {
		text = append(strconv.AppendUint(text, uint64(d), 10), '\n')
	}
	if err := os.WriteFile(name, text, 0o644); err != nil {
		return fmt.Errorf("-durations: %w", err)
	}
	return nil
}

// playTicks plays ticks from number from on. After the first of them, nothing here may allocate on
// the Go heap: a checked build stops the program at such an allocation.
func (row *LevelResult) playTicks(ctx context.Context, o *options, s *game.Server, g *game.Game,
	in *inputs, from int, meter *meter) (ticks int, err error) {
	if err := s.Budget.SealStrict(); err != nil {
		return 0, err
	}
	defer s.Budget.Seal() // the change of levels may allocate; Seal can't fail on an open budget
	begin := time.Now()
	for ticks = from; ticks < o.Ticks && ctx.Err() == nil; {
		start := time.Now()
		wanted := in.next(g, ticks)
		if o.syncTest {
			err = row.twice(ctx, o, s, g, ticks, wanted)
		} else {
			err = g.StepWith(wanted)
		}
		if err != nil {
			return ticks, err
		}
		s.Timeline.Sample()
		s.Systems.Durations[ticks] = uint32(min(time.Since(start).Nanoseconds(), math.MaxUint32))
		if ticks%35 == 0 {
			g.Level.Note("frogs", uint64(g.Level.Frogs.Live()))
		}
		ticks++
		if o.realtime {
			time.Sleep(time.Until(begin.Add(time.Duration(ticks-from) * tickTime)))
		}
		if ticks == from+1 {
			meter.warm()
		}
	}
	return ticks, nil
}

// meter measures the ticks of one map.
type meter struct {
	b               *budget.Budget
	before, after   runtime.MemStats // fields, since variables would escape to the heap
	missing         int
	missingMeasured bool
}

func newMeter(b *budget.Budget) *meter {
	m := &meter{b: b}
	m.missing, m.missingMeasured = b.Missing()
	return m
}

// warm is called after the first tick, which may allocate.
func (m *meter) warm() { runtime.ReadMemStats(&m.before) }

// stop adds the measurements to the row. A metric that couldn't be measured stays null.
func (m *meter) stop(row *LevelResult, ticks int) {
	if ticks > 1 && build != "checked" { // in a checked build SealStrict itself allocates
		runtime.ReadMemStats(&m.after)
		row.GoAllocs = sum(row.GoAllocs, m.after.Mallocs-m.before.Mallocs)
		row.Collections = sum(row.Collections, m.after.NumGC-m.before.NumGC)
	}
	if missing, ok := m.b.Missing(); ok && m.missingMeasured {
		row.BudgetFaults = sum(row.BudgetFaults, max(missing, m.missing))
	}
}

// sum returns figure plus more, as a new pointer; a nil figure counts as 0.
func sum[T int | uint32 | uint64](figure *T, more T) *T {
	if figure != nil {
		more += *figure
	}
	return &more
}

package index

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/upfront-mem/upfront/tests/others/row"
)

// Programs returns the programs of the task "index".
func Programs() []row.Program {
	of := func(name string, open func() (world, error)) row.Program {
		return row.Program{Task: "index", Name: name,
			Run: func(_ context.Context, m *row.Meter, short bool) error {
				_, err := run(m, short, open)
				return err
			}}
	}
	return []row.Program{
		of("in a region, with history", func() (world, error) { return openRegion(true) }),
		of("in a region, without history", func() (world, error) { return openRegion(false) }),
		of("tidwall/rtree, Copy each tick", func() (world, error) { return openTree(true), nil }),
		of("tidwall/rtree, without history", func() (world, error) { return openTree(false), nil }),
	}
}

// world is an index of the game's entities, by their numbers.
type world interface {
	insert(number uint32, box Box) error
	remove(number uint32)
	move(number uint32, box Box) error
	at(number uint32) Box
	near(area Box) (sum uint64) // of the numbers there
	take(tick uint64) error     // keeps the present among the last eight ticks
	// look returns the sum of near for each shot, in the tick that its player saw.
	look(tick uint64, shots *[rays]shot) (sum uint64, err error)
	bound() string
	close() error
}

// run plays ticks of a world of entities that move, leave, enter, look around and shoot. It returns
// the sum of everything that they saw and hit.
func run(m *row.Meter, short bool, open func() (world, error)) (sum uint64, err error) {
	w, err := open()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := fill(w); err != nil {
		return 0, err
	}
	count := 100
	if short {
		count = 3
	}
	times, looks := make([]time.Duration, count), make([]time.Duration, count)
	shots := new([rays]shot)
	err = m.Measure(func() error {
		for i := range times {
			start := time.Now()
			got, err := play(w, uint64(i))
			if err = errors.Join(err, w.take(uint64(i))); err != nil {
				return err
			}
			times[i] = time.Since(start)
			start = time.Now()
			hits, err := shoot(w, uint64(i), shots)
			if err != nil {
				return err
			}
			looks[i] = time.Since(start)
			sum = sum*31 + got*17 + hits
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	m.Row.Bound = w.bound()
	slices.Sort(looks)
	m.Add("best tick", micro(slices.Min(times)), "µs")
	m.Add("64 shots", micro(looks[count/2]), "µs")
	if w, ok := w.(*regional); ok && w.ring != nil {
		m.Add("in use", float64(w.inUse()), "bytes")
		m.Add("ring a snapshot", float64(w.ring.Size()*(ticks+1)/ticks), "bytes")
	}
	return sum, nil
}

func micro(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

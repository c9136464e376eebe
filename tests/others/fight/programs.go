package fight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	_ "embed"

	"github.com/upfront-mem/upfront/tests/others/row"
)

// fight is one of the two programs, for a session over the net.
type fight interface {
	step(in [2]Input)
	take(frame uint64) error
	restore(frame uint64) error
	sum(frame uint64) (uint64, error) // of a snapshot, all fields
	seen() uint32                     // a sum of the fighters and the numbers of all others
}

// late is the frames after which the other player's input arrives.
const late = 7

// input returns the true input of a player in a frame: a choice for some frames.
func input(player int, frame uint64) Input {
	x := (frame/9*2 + uint64(player)) * 0x9E3779B97F4A7C15
	x ^= x >> 31
	in := Input(x * 0xBF58476D1CE4E5B9 >> 40)
	if x>>7&3 == 0 {
		in |= Down
	}
	if x>>9&7 != 0 {
		in &^= Guard
	}
	return in & 0xFF
}

// straight plays frames as if each input was there at once. It calls see with the snapshot of each.
func straight(g fight, frames uint64, see func(frame uint64) error) error {
	for frame := range frames {
		if err := errors.Join(g.take(frame), see(frame)); err != nil {
			return err
		}
		g.step([2]Input{input(0, frame), input(1, frame)})
	}
	return nil
}

// session plays frames with inputs that arrive late, and in one frame of five not at all. In each
// frame it goes back to the last one with both inputs, and plays from there with the guess that the
// other player goes on as before. It calls see for each snapshot with true inputs alone.
func session(g fight, frames uint64, see func(frame uint64) error) error {
	if err := errors.Join(g.take(0), see(0)); err != nil {
		return err
	}
	arrived := uint64(0) // inputs of the other player
	for frame := uint64(late); frame <= frames+late; frame++ {
		from := arrived
		if frame%5 != 0 {
			arrived = frame - late + 1
		}
		if err := g.restore(from); err != nil {
			return err
		}
		for at := from; at < frame; at++ {
			g.step([2]Input{input(0, at), input(1, min(at, arrived-1))})
			if err := g.take(at + 1); err != nil {
				return err
			}
			if at < arrived && at+1 < frames {
				if err := see(at + 1); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Programs returns the programs of the task "fight".
func Programs() []row.Program {
	of := func(name string, play func(m *row.Meter, frames uint64) error) row.Program {
		return row.Program{Task: "fight", Name: name, Run: func(_ context.Context, m *row.Meter, short bool) error {
			if short {
				return play(m, 300)
			}
			return play(m, 20000)
		}}
	}
	return []row.Program{
		of("in a region", func(m *row.Meter, frames uint64) error {
			g, err := openRegion(regionSize)
			if err != nil {
				return err
			}
			m.Add("a snapshot", float64(g.ring.Size()), "bytes")
			m.Add("code for snapshots", float64(ours()), "lines")
			_, full := openRegion(regionSize / 2)
			m.Row.Bound = fmt.Sprintf("%v; in play a full pool or list refuses: the 129th spark isn't made", full)
			return errors.Join(measure(m, g, frames), g.b.Close())
		}),
		of("cloned by hand", func(m *row.Meter, frames uint64) error {
			m.Add("code for snapshots", float64(lines(cloneCode)), "lines")
			m.Row.Bound = "none: lists grow by append, and each frame leaves nine clones to the collector"
			return measure(m, &byHand{hand: newHand()}, frames)
		}),
	}
}

// measure plays a session, with a sum of each frame as for a test of synchrony.
func measure(m *row.Meter, g fight, frames uint64) error {
	times, start := make([]time.Duration, 0, frames), time.Time{}
	total := uint64(0)
	err := m.Measure(func() error {
		start = time.Now()
		return session(g, frames, func(frame uint64) error {
			sum, err := g.sum(frame)
			total += sum
			now := time.Now()
			times, start = append(times, now.Sub(start)), now
			return err
		})
	})
	if err != nil {
		return err
	}
	slices.Sort(times)
	m.Add("median frame", float64(times[len(times)/2].Nanoseconds())/1000, "µs")
	m.Add("99.9 % of frames", float64(times[len(times)*999/1000].Nanoseconds())/1000, "µs")
	return nil
}

func (g *hand) seen() uint32 {
	counts := [...]int{len(g.shots), len(g.sparks), len(g.events), len(g.rounds), len(g.fighters[0].combo),
		len(g.fighters[1].combo), len(g.fighters[0].buffs), len(g.fighters[1].trail)}
	return addAll(add(add(add(0, &g.Match), &g.fighters[0].Fighter), &g.fighters[1].Fighter), counts[:])
}

func (g *regional) seen() uint32 {
	counts := [...]int{g.shots.Live(), g.sparks.Live(), g.events.Len(), g.rounds.Len(), g.combos[0].Len(),
		g.combos[1].Len(), g.buffs[0].Len(), g.trails[1].Len()}
	return addAll(add(add(add(0, &g.Match), &g.fighters[0].Fighter), &g.fighters[1].Fighter), counts[:])
}

//go:embed clone.go
var cloneCode string

//go:embed state.go
var stateCode string

// lines counts the lines of code, without imports, comments and blank lines.
func lines(code string) (n int) {
	_, code, _ = strings.Cut(code, "\n)\n")
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}

// ours counts the lines of the fight in a region that know of snapshots.
func ours() (n int) {
	for line := range strings.Lines(stateCode) {
		for _, word := range []string{"save.State", "save.Begin", "save.NewRing", "save.Ring", "g.ring."} {
			if strings.Contains(line, word) {
				n++
				break
			}
		}
	}
	return n
}

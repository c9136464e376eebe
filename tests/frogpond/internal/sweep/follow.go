package sweep

import "fmt"

// leg is a part of a surface's movement: to a height, at a speed, then a wait in ticks.
type leg struct {
	to, speed int64 // negative: downward
	wait      int
}

func up(to, speed int64) leg   { return leg{to: to, speed: speed} }
func down(to, speed int64) leg { return leg{to: to, speed: -speed} }

func (l leg) then(wait int) leg {
	l.wait = wait
	return l
}

// after returns the height one tick later. A surface beyond the goal jumps to it, as in the game.
func (l leg) after(height int64) int64 {
	if l.speed > 0 {
		return min(height+l.speed, l.to)
	}
	return max(height+l.speed, l.to)
}

// course is the movement of a surface after a line was fired.
type course struct {
	sector  int
	ceiling bool
	legs    []leg
	or      []leg // alternative legs, or nil
	forever bool  // the legs repeat; two rounds are checked
	ways    []*follower
}

// slack is how many ticks late a surface may start. The order of movers decides whether an arrival
// shows in the same tick, and whether a new mover moves in its first tick.
const slack = 2

type effect struct {
	*now
	line    int
	courses []course
	becomes map[int]uint16 // new special of a sector, when its floor has arrived
}

func (e *effect) moving(sector int) bool {
	for i := range e.courses {
		if e.courses[i].sector == sector {
			return true
		}
	}
	return false
}

func (e *effect) add(c course) {
	if !e.moving(c.sector) { // a moving surface goes on as it was
		e.courses = append(e.courses, c)
	}
}

func (e *effect) floor(s int, legs ...leg)   { e.add(course{sector: s, legs: legs}) }
func (e *effect) ceiling(s int, legs ...leg) { e.add(course{sector: s, ceiling: true, legs: legs}) }

func (e *effect) forever(s int, ceiling bool, legs ...leg) {
	e.add(course{sector: s, ceiling: ceiling, legs: append(legs, legs...), forever: true})
}

func (e *effect) become(s int, special uint16) { e.becomes[s] = special }

func (n *now) height(c *course) *int64 {
	if c.ceiling {
		return &n.ceilings[c.sector]
	}
	return &n.floors[c.sector]
}

// start makes the course's followers, and returns the most ticks that the course takes.
func (c *course) start(at int64) (ticks int) {
	c.ways = []*follower{{at: at, legs: c.legs, forever: c.forever}}
	if c.or != nil {
		c.ways = append(c.ways, &follower{at: at, legs: c.or, forever: c.forever})
	}
	for _, f := range c.ways {
		f.skip()
	}
	ticks = 4 * slack
	for _, l := range c.legs {
		ticks += int(max((l.to-at)/l.speed, 0)) + 1 + l.wait + slack
		at = l.to
	}
	return ticks
}

// way returns the first follower without an error, or else the first follower.
func (c *course) way() *follower {
	for _, f := range c.ways {
		if f.said == "" {
			return f
		}
	}
	return c.ways[0]
}

// follower checks the movement of a surface, tick by tick.
type follower struct {
	legs    []leg
	forever bool
	at      int64 // the last height seen
	done    int   // legs
	under   bool  // between the ends of a leg; otherwise it stands
	still   int   // ticks that it has stood
	wait    int   // ticks that it must stand
	tick    int
	said    string // the first error
}

// skip skips legs without movement, but keeps the waits at their ends.
func (f *follower) skip() {
	for f.done < len(f.legs) && f.legs[f.done].after(f.at) == f.at {
		f.wait += f.legs[f.done].wait
		f.done++
	}
}

// see checks the height after the next tick.
func (f *follower) see(height int64) {
	f.tick++
	switch {
	case f.said != "" || f.done == len(f.legs) && f.forever:
	case f.done == len(f.legs):
		if height != f.at {
			f.wrong(height, f.at)
		}
	case height == f.at && !f.under && f.still < f.wait+slack:
		f.still++
	case height != f.legs[f.done].after(f.at):
		f.wrong(height, f.legs[f.done].after(f.at))
	case f.still < f.wait:
		f.said = fmt.Sprintf("tick %d: moves after %d ticks of standing, expected %d",
			f.tick, f.still, f.wait)
	default:
		f.at, f.under = height, true
		if l := f.legs[f.done]; height == l.to {
			f.done, f.still, f.wait, f.under = f.done+1, 0, l.wait, false
			f.skip()
		}
	}
}

func (f *follower) wrong(got, want int64) {
	f.said = fmt.Sprintf("tick %d: at %s, expected %s", f.tick, units(got), units(want))
}

// units returns a height in map units as text.
func units(height int64) string { return fmt.Sprint(float64(height) / unit) }

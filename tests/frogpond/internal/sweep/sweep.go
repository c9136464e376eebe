// Package sweep checks a map's special lines and sectors against a table of its own:
//
//	m, err := sweep.Parse(lump)
//	result, err := sweep.Lines(m, load)
//
// It fires every line from a fresh load, watches the sectors tick by tick, and compares their
// heights with the effect of the line's type. The table is in table.go. It shares no code and no
// format with the game's own table, so a mistake in either table shows. The table in table.go is
// ordered as mappers of the game order it: by effect, with a column for each way to trigger the
// effect. An effect is a function of the map and of the current heights.
package sweep

import (
	"fmt"
	"slices"
)

// World is a loaded map. Its only body is the body that fires.
type World interface {
	// Fire lets a body that looks east do by's action to a line, at its middle.
	Fire(line int, by By)
	// Restore restores every sector as loaded, but not the lines' memory.
	Restore()
	// Tick plays a tick, 1/35 second.
	Tick()
	// Floor and Ceiling return heights in 1/65536 units.
	Floor(sector int) int32
	Ceiling(sector int) int32
	// Light returns the light: 0 is dark, 255 the brightest.
	Light(sector int) int
	// Special returns the sector's special, which a move of its floor may change.
	Special(sector int) uint16
	// Scroll returns how far the texture of a line's front has moved to the left, in 1/65536 units.
	Scroll(line int) int32
	// Carried returns how far a body that stands at a place in a sector is carried in a tick.
	Carried(sector, x, y int) (dx, dy int32)
	// Body returns the place of the body that fired last: map units, and degrees counter-clockwise
	// from east.
	Body() (x, y, angle int)
	// Exits returns how many times bodies took an exit.
	Exits() int
	// Hurt returns the health that a body loses in a sector in a number of ticks.
	Hurt(sector, ticks int) int
}

// By is a body, and its action on a line.
type By struct {
	Kind    Kind
	Back    bool // from the line's back
	Monster bool
	Keys    Keys
}

func (b By) String() string {
	who, side := "a player", ""
	if b.Monster {
		who = "a monster"
	}
	if b.Back {
		side = " from the back"
	}
	does := []string{"walks", "uses", "shoots"}[b.Kind]
	return fmt.Sprintf("%s %s%s with keys %03b", who, does, side, b.Keys)
}

// Result is the result of a sweep of a map.
type Result struct {
	Lines   map[string]int `json:"lines"`   // with the table's effect, by family
	Idle    int            `json:"idle"`    // of these, lines whose effect is none
	Sectors int            `json:"sectors"` // with the table's effect of their special
	Unknown map[int]int    `json:"unknown"` // lines of types that the table lacks, by type
	Wrong   []string       `json:"wrong"`
}

// sweep is the check of one line.
type sweep struct {
	m     *Map
	w     World
	n     *now // the expected map
	line  int
	rule  rule
	by    By
	said  string
	acted bool // the line had an effect

	endless bool // the effect goes on for ever
}

// Lines fires every special line of a map, and compares the effects with the table. It calls load
// for each line: load returns the map freshly loaded. An error is load's.
func Lines(m *Map, load func() (World, error)) (Result, error) {
	result := Result{Lines: map[string]int{}, Unknown: map[int]int{}}
	for i := range m.Lines {
		special := m.Lines[i].Special
		if special == 0 {
			continue
		}
		r, known := ruleOf(special)
		if !known {
			result.Unknown[int(special)]++
			continue
		}
		w, err := load()
		if err != nil {
			return result, err
		}
		s := &sweep{m: m, w: w, n: m.now(), line: i, rule: r}
		s.run()
		switch {
		case s.said != "":
			result.Wrong = append(result.Wrong, fmt.Sprintf("line %d, type %d: %s", i, special, s.said))
		default:
			result.Lines[string(r.family)]++
			if !s.acted {
				result.Idle++
			}
		}
	}
	return result, nil
}

func (s *sweep) wrong(format string, args ...any) {
	if s.said == "" {
		s.said = fmt.Sprintf(format, args...)
	}
}

// run checks the actions that must have no effect, then the right action, and then that action
// again.
func (s *sweep) run() {
	switch {
	case s.rule.scroll != 0:
		s.scrolls()
		return
	case s.rule.carries:
		s.carries()
		return
	}
	s.by = By{Kind: s.rule.kind, Keys: s.rule.key, Monster: s.rule.who == monsters}
	if s.rule.who == both && s.line%2 == 1 && s.m.Lines[s.line].Flags&secret == 0 {
		s.by.Monster = true
	}
	for _, by := range s.refused() {
		s.quiet(by, 2)
	}
	s.fire()
	// Neither can be checked again: a player that exits is at a start, and an endless effect goes
	// on.
	if s.endless || s.rule.exit {
		return
	}
	s.w.Restore() // to see whether the effect repeats
	s.n = s.m.now()
	switch {
	case s.rule.again:
		s.fire()
	case s.acted:
		s.quiet(s.by, 4)
	}
}

// secret is a flag of lines that monsters don't use.
const secret = 32

// refused returns the actions that must have no effect.
func (s *sweep) refused() (list []By) {
	for kind := Walk; kind <= Shoot; kind++ {
		if kind != s.rule.kind {
			list = append(list, By{Kind: kind, Keys: everyKey})
		}
	}
	if s.rule.key != 0 {
		list = append(list, By{Kind: s.rule.kind, Keys: everyKey &^ s.rule.key})
	}
	if s.rule.who != both {
		list = append(list, By{Kind: s.rule.kind, Keys: everyKey, Monster: s.rule.who == players})
	}
	if s.rule.kind == Use || s.rule.teleport != nil {
		back := s.by
		back.Back = true
		list = append(list, back)
	}
	return list
}

// quiet fires the line, and expects no effect within some ticks.
func (s *sweep) quiet(by By, ticks int) {
	exits := s.w.Exits()
	s.w.Fire(s.line, by)
	for range ticks {
		s.w.Tick()
	}
	what := fmt.Sprintf("%s: nothing may happen, but ", by)
	if s.w.Exits() != exits {
		s.wrong("%san exit was taken", what)
	}
	if to := s.arrival(); to != nil {
		if x, y, _ := s.w.Body(); to.has(x, y) {
			s.wrong("%sit was teleported", what)
		}
	}
	s.others(nil, what)
}

// arrival returns the place where the line's teleport ends, or nil.
func (s *sweep) arrival() *arrival {
	if s.rule.teleport == nil {
		return nil
	}
	return s.rule.teleport(s.m, s.line)
}

// others expects every surface, every steady light and every special as in the table. It ignores
// the specials of the sectors in but, whose moving floors may change them.
func (s *sweep) others(but []int, what string) {
	for i := range s.m.Sectors {
		if got := int64(s.w.Floor(i)); got != s.n.floors[i] {
			s.wrong("%ssector %d: floor at %s, expected %s", what, i, units(got), units(s.n.floors[i]))
		}
		if got := int64(s.w.Ceiling(i)); got != s.n.ceilings[i] {
			s.wrong("%ssector %d: ceiling at %s, expected %s", what, i, units(got), units(s.n.ceilings[i]))
		}
		if got := s.w.Light(i); got != s.n.lights[i] && !flickers(s.m.Sectors[i].Special) {
			s.wrong("%ssector %d: light %d, expected %d", what, i, got, s.n.lights[i])
		}
		if got := s.w.Special(i); got != s.n.special[i] && !slices.Contains(but, i) {
			s.wrong("%ssector %d: special %d, expected %d", what, i, got, s.n.special[i])
		}
	}
}

// targets returns the sectors that the line affects.
func (s *sweep) targets() []int {
	l := &s.m.Lines[s.line]
	switch {
	case !s.rule.manual:
		return s.m.tagged(l.Tag)
	case l.Back >= 0:
		return []int{l.Back}
	}
	return nil
}

func (s *sweep) fire() {
	exits := s.w.Exits()
	s.w.Fire(s.line, s.by)
	switch {
	case s.rule.exit:
		s.acted = true
		if got := s.w.Exits(); got != exits+1 {
			s.wrong("%s: %d exits were taken, expected 1", s.by, got-exits)
		}
	case s.rule.teleport != nil:
		s.arrives()
	case s.rule.light != nil:
		for _, sector := range s.targets() {
			s.n.lights[sector] = s.rule.light(s.n, sector)
			s.acted = s.acted || s.n.lights[sector] != s.m.Sectors[sector].Light
		}
	case s.rule.moves != nil:
		s.moves()
		return
	}
	s.w.Tick()
	s.others(nil, fmt.Sprintf("%s: ", s.by))
}

func (s *sweep) arrives() {
	to := s.arrival()
	if to == nil {
		return
	}
	s.acted = true
	x, y, angle := s.w.Body()
	off := ((angle-to.angle)%360 + 540) % 360 // 180: the same direction
	switch {
	case !to.has(x, y):
		s.wrong("%s: it is at (%d, %d), expected (%d, %d)", s.by, x, y, to.x, to.y)
	case to.out != nil && to.out.behind(x, y):
		s.wrong("%s: it is at (%d, %d), behind the line that it comes out of", s.by, x, y)
	case off < 180-to.off || off > 180+to.off:
		s.wrong("%s: it looks at %d degrees, expected %d", s.by, angle, to.angle)
	}
}

// longest is the most ticks that a line may take.
const longest = 10000

// moves follows every moving surface, for as long as the table expects it to move.
func (s *sweep) moves() {
	what := fmt.Sprintf("%s: ", s.by)
	e := &effect{now: s.n, line: s.line, becomes: map[int]uint16{}}
	for _, sector := range s.targets() {
		if !e.moving(sector) {
			s.rule.moves(e, sector)
		}
	}
	ticks := 0
	var moving []int
	for i := range e.courses {
		c := &e.courses[i]
		moving = append(moving, c.sector)
		ticks = max(ticks, c.start(*s.n.height(c)))
		s.acted = s.acted || c.ways[0].done < len(c.legs)
		s.endless = s.endless || c.forever
	}
	if ticks > longest {
		s.wrong("%sexpects %d ticks", what, ticks)
		return
	}
	for tick := range ticks {
		s.w.Tick()
		for i := range e.courses {
			s.see(&e.courses[i], what)
		}
		if s.said != "" {
			return
		}
		if tick%16 == 0 {
			s.others(moving, what)
		}
	}
	for i := range e.courses {
		if c := &e.courses[i]; !c.forever {
			if f := c.way(); f.done < len(f.legs) {
				s.wrong("%ssector %d: ends at %s on the way to %s",
					what, c.sector, units(f.at), units(f.legs[f.done].to))
			}
		}
	}
	for sector, special := range e.becomes {
		s.n.special[sector] = special
	}
	s.others(nil, what)
}

func (s *sweep) see(c *course, what string) {
	surface, height := "floor", s.w.Floor(c.sector)
	if c.ceiling {
		surface, height = "ceiling", s.w.Ceiling(c.sector)
	}
	for _, f := range c.ways {
		f.see(int64(height))
	}
	if f := c.way(); f.said != "" {
		s.wrong("%ssector %d: %s: %s", what, c.sector, surface, f.said)
	}
	*s.n.height(c) = int64(height)
}

// scrolls watches the texture of a line, without firing the line.
func (s *sweep) scrolls() {
	before := s.w.Scroll(s.line)
	for range 10 {
		s.w.Tick()
	}
	s.acted = true
	if got, want := s.w.Scroll(s.line)-before, int32(10*s.rule.scroll*unit); got != want {
		s.wrong("its texture went %s units in 10 ticks, expected %s",
			units(int64(got)), units(int64(want)))
	}
}

// carries puts a body into each sector, and expects the sector to carry it as the lines with the
// sector's tag say.
func (s *sweep) carries() {
	for i := range s.m.Sectors {
		x, y, inside := s.m.middle(i)
		dx, dy := s.m.carried(i)
		if !inside || (dx != 0 || dy != 0) && !s.m.open(x, y, int(max(dx, -dx, dy, -dy)/unit)+1) {
			continue // walls and steps may stop the body, which this table doesn't cover
		}
		s.acted = s.acted || s.m.Sectors[i].Tag == s.m.Lines[s.line].Tag
		if gotX, gotY := s.w.Carried(i, x, y); gotX != dx || gotY != dy {
			s.wrong("sector %d carries (%s, %s) units a tick, expected (%s, %s)", i,
				units(int64(gotX)), units(int64(gotY)), units(int64(dx)), units(int64(dy)))
		}
	}
}

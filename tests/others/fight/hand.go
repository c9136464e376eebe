package fight

import "slices"

type (
	// hand is the fight on the Go heap, as a Go programmer writes it.
	hand struct {
		Match
		fighters [2]*handFighter
		shots    []*handShot
		sparks   []Spark
		props    []*Prop
		events   []Event
		rounds   []Round
	}

	handFighter struct {
		Fighter
		inputs  []Input
		combo   []Hit
		buffs   []Buff
		trail   []Point          // of a super
		targets map[int32]uint32 // hit by this move, with the frame
		last    *handShot        // answers to up and down
	}

	handShot struct {
		Shot
		path []Point
	}
)

func newHand() *hand {
	g := &hand{Match: Match{Clock: roundTime, Seed: 45}}
	for i := range g.fighters {
		g.fighters[i] = &handFighter{targets: map[int32]uint32{}}
		g.fighters[i].Start(int32(1500 + 1000*i))
	}
	for i := range int32(mostProps) {
		g.props = append(g.props, &Prop{X: 800 * (i + 1), Health: 100})
	}
	return g
}

func (g *hand) step(in [2]Input) {
	g.Match.Step(&g.fighters[0].Fighter, &g.fighters[1].Fighter)
	for i, f := range g.fighters {
		if f.inputs = append(f.inputs, in[i]); len(f.inputs) > mostInputs {
			f.inputs = slices.Delete(f.inputs, 0, 1)
		}
		power := int32(0)
		for k := range f.buffs {
			f.buffs[k].Left--
			power += f.buffs[k].Power
		}
		f.buffs = slices.DeleteFunc(f.buffs, func(b Buff) bool { return b.Left <= 0 })
		f.Step(f.inputs, power, &g.fighters[1-i].Fighter)
		if f.MoveFrame == 1 {
			clear(f.targets)
		}
		if f.Move == Super && f.MoveFrame == 2 && len(f.buffs) < mostBuffs {
			f.buffs = append(f.buffs, Buff{12, 240})
		}
		if f.Move == Super {
			f.trail = append(f.trail, Point{f.X, f.Y})
		}
		if len(f.trail) > mostTrail || len(f.trail) > 0 && f.Move != Super {
			f.trail = slices.Delete(f.trail, 0, 1)
		}
		if f.Move == Fireball && f.MoveFrame == 6 && len(g.shots) < mostShots {
			f.last = &handShot{Shot: Shot{f.X, f.Y + 90, f.Facing * 24, 0, 120, int32(i), 60, 1}}
			g.shots, f.Timers[Cooldown] = append(g.shots, f.last), 50
		}
		if f.last != nil {
			f.last.VY = int32(in[i]&Up) - int32(in[i]&Down)/2
		}
	}
	for i, f := range g.fighters {
		hits, _ := f.Reach()
		for _, hit := range hits {
			g.strike(i, hit, f.Move*25, 8+4*f.Move, false)
		}
		if f.Combo == 0 {
			f.combo = f.combo[:0]
		}
	}
	g.fly()
	g.judge()
}

// strike has fighter i's hit land where it does, and reports whether it did. A shot hits once.
func (g *hand) strike(i int, hit Box, damage, frames int32, shot bool) (landed bool) {
	f, foe := g.fighters[i], g.fighters[1-i]
	_, body := foe.Reach()
	if hit.Overlaps(body) && foe.Timers[Invincible] == 0 && (shot || f.targets[0] == 0) {
		landed = true
		if !shot {
			f.targets[0] = g.Frame
		}
		if damage := foe.Hurt(&f.Fighter, damage, frames); damage > 0 && len(f.combo) < mostCombo {
			f.combo = append(f.combo, Hit{f.Move, damage, int32(g.Frame)})
		}
		for k := int32(0); k < 6 && len(g.sparks) < mostSparks; k++ {
			g.sparks = append(g.sparks, Spark{body.X, body.Y + 80, 7*k - 20, 30 - k*k, 12 + k, damage})
		}
		g.Shake, g.Flash = damage/4, damage
	}
	for k, p := range g.props {
		at := int32(1 + k)
		if p.Health > 0 && hit.Overlaps(Box{p.X, 0, 80, 100}) && (shot || f.targets[at] == 0) {
			landed, p.Health, p.Shake = true, p.Health-damage/4, 20
			if !shot {
				f.targets[at] = g.Frame
			}
		}
	}
	return landed
}

// fly moves shots, sparks and props.
func (g *hand) fly() {
	g.shots = slices.DeleteFunc(g.shots, func(s *handShot) bool {
		s.X, s.Y, s.Left, s.Spin = s.X+s.VX, s.Y+s.VY, s.Left-1, s.Spin*3%257
		if s.path = append(s.path, Point{s.X, s.Y}); len(s.path) > mostPath {
			s.path = slices.Delete(s.path, 0, 1)
		}
		if !g.strike(int(s.Owner), Box{s.X - 20, s.Y - 20, 40, 40}, s.Damage, 20, true) && s.Left > 0 {
			return false
		}
		if f := g.fighters[s.Owner]; f.last == s {
			f.last = nil
		}
		return true
	})
	for i := range g.sparks {
		s := &g.sparks[i]
		s.X, s.Y, s.VY, s.Left = s.X+s.VX, s.Y+s.VY, s.VY-2, s.Left-1
	}
	g.sparks = slices.DeleteFunc(g.sparks, func(s Spark) bool { return s.Left == 0 })
	for _, p := range g.props {
		p.Shake = max(p.Shake-1, 0)
	}
}

// judge ends a round, and has the announcer say it later.
func (g *hand) judge() {
	for _, e := range g.events {
		if uint32(e.At) == g.Frame {
			g.Flash += e.Kind
		}
	}
	g.events = slices.DeleteFunc(g.events, func(e Event) bool { return uint32(e.At) <= g.Frame })
	round, over := g.Over(&g.fighters[0].Fighter, &g.fighters[1].Fighter)
	if !over {
		return
	}
	if len(g.rounds) == mostRounds {
		g.rounds = g.rounds[:0]
	}
	g.rounds = append(g.rounds, round)
	for k := int32(1); k <= 3 && len(g.events) < mostEvents; k++ {
		g.events = append(g.events, Event{k, int32(g.Frame) + 30*k})
	}
}

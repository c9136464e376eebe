package fight

func (g *regional) step(in [2]Input) {
	g.Match.Step(&g.fighters[0].Fighter, &g.fighters[1].Fighter)
	for i := range g.fighters {
		f, buffs, trail := &g.fighters[i], &g.buffs[i], &g.trails[i]
		copy(f.inputs[:], f.inputs[1:])
		f.inputs[mostInputs-1] = in[i]
		power := int32(0)
		for k := buffs.Len() - 1; k >= 0; k-- {
			b := buffs.At(k)
			b.Left--
			power += b.Power
			if b.Left <= 0 {
				buffs.RemoveSwap(k)
			}
		}
		f.Step(f.inputs[:], power, &g.fighters[1-i].Fighter)
		if f.MoveFrame == 1 {
			clear(f.targets[:])
		}
		if f.Move == Super && f.MoveFrame == 2 {
			buffs.Push(Buff{12, 240})
		}
		if trail.Len() == mostTrail || f.Move != Super {
			trail.PopFront()
		}
		if f.Move == Super {
			trail.PushBack(Point{f.X, f.Y})
		}
		if f.Move == Fireball && f.MoveFrame == 6 {
			if s, handle := g.shots.Get(); s != nil {
				s.Shot = Shot{f.X, f.Y + 90, f.Facing * 24, 0, 120, int32(i), 60, 1}
				f.last, f.Timers[Cooldown] = handle, 50
			}
		}
		if s := g.shots.At(f.last); s != nil {
			s.VY = int32(in[i]&Up) - int32(in[i]&Down)/2
		}
	}
	for i := range g.fighters {
		f := &g.fighters[i]
		hits, _ := f.Reach()
		for _, hit := range hits {
			g.strike(i, hit, f.Move*25, 8+4*f.Move, false)
		}
		if f.Combo == 0 {
			g.combos[i].Clear()
		}
	}
	g.fly()
	g.judge()
}

func (g *regional) strike(i int, hit Box, damage, frames int32, shot bool) (landed bool) {
	f, foe := &g.fighters[i], &g.fighters[1-i]
	_, body := foe.Reach()
	if hit.Overlaps(body) && foe.Timers[Invincible] == 0 && (shot || f.targets[0] == 0) {
		landed = true
		if !shot {
			f.targets[0] = g.Frame
		}
		if damage := foe.Hurt(&f.Fighter, damage, frames); damage > 0 {
			g.combos[i].Push(Hit{f.Move, damage, int32(g.Frame)})
		}
		for k := range int32(6) {
			if s := g.sparks.Get(); s != nil {
				*s = Spark{body.X, body.Y + 80, 7*k - 20, 30 - k*k, 12 + k, damage}
			}
		}
		g.Shake, g.Flash = damage/4, damage
	}
	for k := range g.props {
		p, at := &g.props[k], 1+k
		if p.Health > 0 && hit.Overlaps(Box{p.X, 0, 80, 100}) && (shot || f.targets[at] == 0) {
			landed, p.Health, p.Shake = true, p.Health-damage/4, 20
			if !shot {
				f.targets[at] = g.Frame
			}
		}
	}
	return landed
}

func (g *regional) fly() {
	for handle, s := range g.shots.All() {
		s.X, s.Y, s.Left, s.Spin = s.X+s.VX, s.Y+s.VY, s.Left-1, s.Spin*3%257
		copy(s.path[:], s.path[1:])
		s.path[mostPath-1] = Point{s.X, s.Y}
		if g.strike(int(s.Owner), Box{s.X - 20, s.Y - 20, 40, 40}, s.Damage, 20, true) || s.Left <= 0 {
			g.shots.Put(handle)
		}
	}
	for _, s := range g.sparks.All() {
		s.X, s.Y, s.VY, s.Left = s.X+s.VX, s.Y+s.VY, s.VY-2, s.Left-1
		if s.Left == 0 {
			g.sparks.Put(s)
		}
	}
	for i := range g.props {
		g.props[i].Shake = max(g.props[i].Shake-1, 0)
	}
}

func (g *regional) judge() {
	for k := g.events.Len() - 1; k >= 0; k-- {
		if e := g.events.At(k); uint32(e.At) <= g.Frame {
			g.Flash += e.Kind
			g.events.RemoveSwap(k)
		}
	}
	round, over := g.Over(&g.fighters[0].Fighter, &g.fighters[1].Fighter)
	if !over {
		return
	}
	if !g.rounds.Push(round) {
		g.rounds.Clear()
		g.rounds.Push(round)
	}
	for k := int32(1); k <= 3; k++ {
		g.events.Push(Event{k, int32(g.Frame) + 30*k})
	}
}

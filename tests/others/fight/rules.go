package fight

// The rules, which both programs share: values without references, and their steps. The numbers are
// whole, so each machine plays the same fight.

// The most of each list, and the frames of a round.
const (
	mostInputs = 60
	mostShots  = 8
	mostPath   = 24
	mostTrail  = 16
	mostSparks = 128
	mostCombo  = 64
	mostBuffs  = 8
	mostProps  = 4
	mostEvents = 16
	mostRounds = 16
	roundTime  = 3600
)

// Input is a player's buttons in a frame.
type Input uint32

const (
	Left Input = 1 << iota
	Right
	Up
	Down
	Light
	Heavy
	Special
	Guard
)

// Timers of a fighter, in frames.
const (
	Hitstun = iota
	Blockstun
	Recovery
	Invincible
	ComboOver
	Cooldown
	Dizzy
	numTimers = 24
)

// Moves of a fighter.
const (
	Idle = iota
	Jab
	Smash
	Fireball
	Super
)

type (
	Box   struct{ X, Y, W, H int32 }
	Point struct{ X, Y int32 }
	Hit   struct{ Move, Damage, Frame int32 } // of a combo
	Buff  struct{ Power, Left int32 }         // of a super
	Event struct{ Kind, At int32 }            // that the announcer says later
	Prop  struct{ X, Health, Shake int32 }    // of the stage
	Spark struct{ X, Y, VX, VY, Left, Hue int32 }
	Shot  struct{ X, Y, VX, VY, Left, Owner, Damage, Spin int32 }
	Round struct{ Winner, Frames, Perfect int32 }

	// Fighter has 132 numbers.
	Fighter struct {
		X, Y, VX, VY, Facing, Ground, Push, Lean             int32
		Health, Guard, Meter, Stun, Burst, Heat, Armor, Wins int32
		Move, MoveFrame, Stance, Anim, AnimFrame, Cycle      int32
		Combo, ComboDamage, Scale, Juggle, Best, Taken       int32
		Thrown, Blocked, Landed, Jumps, Steps, Supers        int32
		Timers                                               [numTimers]int32
		Palette                                              [12]int32
		Joints                                               [27]Point // of the skeleton
		Buttons                                              [8]int32  // frames of each button
	}

	// Match has 36 numbers.
	Match struct {
		Frame, Clock, Seed, Phase               uint32
		CameraX, CameraY, Zoom, Shake, Flash, Z int32
		Lights                                  [14]int32
		Crowd                                   [12]int32
	}
)

func (m *Match) Step(a, b *Fighter) {
	m.Frame++
	m.Clock--
	m.Seed = m.Seed*1664525 + 1013904223
	m.CameraX += ((a.X+b.X)/2 - m.CameraX) / 8
	m.CameraY += ((a.Y+b.Y)/4 - m.CameraY) / 8
	m.Zoom += (abs(a.X-b.X) - m.Zoom) / 16
	m.Shake, m.Flash, m.Z = m.Shake/2, m.Flash*3/4, m.Z+m.Shake
	for i := range m.Lights {
		m.Lights[i] += (m.Flash - m.Lights[i]) / int32(2+i)
	}
	for i := range m.Crowd {
		m.Crowd[i] = m.Crowd[i]*7/8 + int32(m.Seed>>(8+i)&7)*a.Combo + m.Shake
	}
}

// Step plays a frame of a fighter. inputs are its latest, the newest last; power is of its buffs.
func (f *Fighter) Step(inputs []Input, power int32, foe *Fighter) {
	in := inputs[len(inputs)-1]
	for i := range f.Buttons {
		f.Buttons[i] = (f.Buttons[i] + 1) * int32(in>>i&1)
	}
	for i := range f.Timers {
		f.Timers[i] = max(f.Timers[i]-1, 0)
	}
	f.Facing = sign(foe.X - f.X)
	if f.Timers[Hitstun]+f.Timers[Blockstun]+f.Timers[Recovery]+f.Timers[Dizzy] == 0 {
		f.act(in, inputs, power)
	}
	f.VY -= 3
	f.X, f.Y = min(max(f.X+f.VX+f.Push, 0), 4000), f.Y+f.VY
	f.VX, f.Push = f.VX*7/8, f.Push*3/4
	if f.Y <= 0 {
		f.Y, f.VY, f.Ground, f.Juggle = 0, 0, f.Ground+1, 0
	}
	if f.Timers[ComboOver] == 0 {
		f.Best, f.Combo, f.ComboDamage, f.Scale = max(f.Best, f.Combo), 0, 0, 100
	}
	if f.MoveFrame++; f.Move != Idle && f.MoveFrame > 8+6*f.Move {
		f.Move, f.MoveFrame, f.Timers[Recovery] = Idle, 0, 2*f.Move
	}
	f.Meter, f.Guard, f.Stun = min(f.Meter+1, 1000), min(f.Guard+1, 200), max(f.Stun-1, 0)
	f.Heat, f.Burst = f.Heat*15/16+power, min(f.Burst+f.Taken/64, 300)
	f.Lean, f.Armor = (f.Lean+f.VX)/2, power/4
	f.AnimFrame, f.Cycle = (f.AnimFrame+1)%(6+f.Move), f.Cycle+f.Anim
	if f.AnimFrame == 0 {
		f.Anim = (f.Anim + 1) % (4 + f.Stance)
	}
	for i := range f.Palette {
		f.Palette[i] = (f.Palette[i]*3 + f.Heat + int32(i)*f.Stun) / 4
	}
	for i := range f.Joints {
		j := &f.Joints[i]
		j.X += (f.X + f.Lean*int32(i) - j.X) / 3
		j.Y += (f.Y + f.AnimFrame*int32(i%5) - j.Y) / 3
	}
}

func (f *Fighter) act(in Input, inputs []Input, power int32) {
	f.Stance = int32(in & (Down | Guard) >> 3)
	switch {
	case in&Left != 0:
		f.VX, f.Steps = f.VX-4-power/8, f.Steps+1
	case in&Right != 0:
		f.VX, f.Steps = f.VX+4+power/8, f.Steps+1
	}
	if in&Up != 0 && f.Ground > 0 {
		f.VY, f.Ground, f.Jumps = 40, 0, f.Jumps+1
	}
	if f.Move != Idle {
		return
	}
	switch move := Recognize(inputs); {
	case move == Super && f.Meter >= 1000:
		f.Move, f.MoveFrame, f.Meter, f.Supers = Super, 0, 0, f.Supers+1
	case move == Super, move == Fireball && f.Timers[Cooldown] > 0:
	case move != Idle:
		f.Move, f.MoveFrame = move, 0
	}
}

// Recognize returns the move that the latest inputs mean.
func Recognize(inputs []Input) int32 {
	in, down := inputs[len(inputs)-1], 0
	for _, i := range inputs {
		if i&Down != 0 {
			down++
		}
	}
	switch {
	case in&Special != 0 && down > 40:
		return Super
	case in&Special != 0 && down > 0:
		return Fireball
	case in&Heavy != 0:
		return Smash
	case in&Light != 0:
		return Jab
	}
	return Idle
}

// Reach returns the boxes with which f hits in this frame, and the one where it is hit.
func (f *Fighter) Reach() (hits [2]Box, body Box) {
	body = Box{f.X - 30, f.Y, 60, 160 - 40*f.Stance/16}
	if f.Move == Jab || f.Move == Smash || f.Move == Super {
		if f.MoveFrame > 3 && f.MoveFrame < 9 {
			hits[0] = Box{f.X + f.Facing*60 - 40, f.Y + 60, 80 + 20*f.Move, 40}
			hits[1] = Box{f.X + f.Facing*90 - 30, f.Y + 20, 60, 30 * f.Move}
		}
	}
	return hits, body
}

func (b Box) Overlaps(c Box) bool {
	return b.W > 0 && b.X < c.X+c.W && c.X < b.X+b.W && b.Y < c.Y+c.H && c.Y < b.Y+b.H
}

// Hurt has f hit by foe, and returns the damage; 0 if f guards.
func (f *Fighter) Hurt(foe *Fighter, damage, frames int32) int32 {
	if f.Stance >= 16 && f.Guard > damage {
		f.Guard, f.Timers[Blockstun], f.Blocked = f.Guard-damage, frames/2, f.Blocked+1
		return 0
	}
	damage = max(damage*foe.Scale/100-f.Armor, 1)
	f.Health, f.Taken, f.Stun = f.Health-damage, f.Taken+damage, f.Stun+damage*2
	f.Timers[Hitstun], f.Push, f.VY = frames, foe.Facing*damage, f.VY+damage/4
	if f.Stun > 300 {
		f.Stun, f.Timers[Dizzy] = 0, 90
	}
	foe.Combo, foe.ComboDamage, foe.Landed = foe.Combo+1, foe.ComboDamage+damage, foe.Landed+1
	foe.Scale, foe.Timers[ComboOver], foe.Meter = max(foe.Scale-8, 20), 40, min(foe.Meter+damage, 1000)
	f.Juggle += min(f.Y, 1)
	return damage
}

// Start places a fighter for a round.
func (f *Fighter) Start(x int32) {
	f.X, f.Y, f.VX, f.VY, f.Health, f.Guard, f.Stun, f.Scale = x, 0, 0, 0, 1000, 200, 0, 100
	f.Move, f.MoveFrame, f.Timers, f.Push = Idle, 0, [numTimers]int32{Invincible: 30}, 0
}

// Over ends the round if a fighter is down or the time is up, and starts the next.
func (m *Match) Over(a, b *Fighter) (r Round, over bool) {
	if min(a.Health, b.Health) > 0 && m.Clock > 0 {
		return r, false
	}
	r = Round{Frames: roundTime - int32(m.Clock), Perfect: max(a.Health, b.Health) / 1000}
	if a.Health < b.Health {
		r.Winner = 1
	}
	[]*Fighter{a, b}[r.Winner].Wins++
	m.Clock, m.Phase = roundTime, m.Phase+1
	a.Start(1500)
	b.Start(2500)
	return r, true
}

func abs(x int32) int32 { return max(x, -x) }

func sign(x int32) int32 {
	if x < 0 {
		return -1
	}
	return 1
}

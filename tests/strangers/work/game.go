package work

// The limits of the program game.
const (
	GameTicks = 12_000
	MostShips = 64
	MostShots = 4096
	Snapshots = 8 // last ticks whose states are kept

	hit  = 12 << 8 // the distance at which a shot hits, in each direction
	edge = 1 << 19 // the world is a square from -edge to edge, with opposite edges joined
)

// Guess returns the input with which a tick is played at first.
func Guess(tick int) uint32 { return uint32(Mix(uint64(tick / 2))) }

// Real returns the input with which a tick is played again.
func Real(tick int) uint32 { return uint32(Mix(uint64(tick/2 + tick%3))) }

// Back returns the number of ticks that are played again after a tick: 0, or 1 to Snapshots-1.
func Back(tick int) int {
	if tick < Snapshots || tick%4 != 3 {
		return 0
	}
	return 1 + int(Mix(uint64(tick))%(Snapshots-1))
}

// Saves reports whether the game is saved after a tick.
func Saves(tick int) bool { return tick%64 == 63 }

// Ship is a ship without its handles.
type Ship struct {
	ID           uint32
	Hull         int32
	X, Y, VX, VY int32
}

// NewShip returns the ship with an ID, which counts ships from 1.
func NewShip(id uint32) Ship {
	v := Mix(uint64(id))
	return Ship{ID: id, Hull: 300 + int32(v>>40%200), X: wrap(int32(v)), Y: wrap(int32(v >> 20))}
}

// Fly moves the ship for a tick.
func (s *Ship) Fly(input uint32) {
	turn := input ^ s.ID*2654435761
	s.VX += int32(turn>>4&31) - 15 - s.VX>>5
	s.VY += int32(turn>>12&31) - 15 - s.VY>>5
	s.X, s.Y = wrap(s.X+s.VX), wrap(s.Y+s.VY)
}

// Fires reports whether the ship fires in a tick. There are quiet times and battles.
func (s *Ship) Fires(tick int) bool {
	period := uint32(24)
	if tick>>8%4 == 3 {
		period = 9
	}
	return (s.ID+uint32(tick))%period == 0
}

// Fire returns the ship's shot of a tick.
func (s *Ship) Fire(tick int) Shot {
	v := Mix(uint64(s.ID)<<32 | uint64(tick))
	return Shot{ID: v, X: s.X, Y: s.Y, Left: 180 + int32(v>>20&63),
		VX: s.VX + int32(v&0x3ff) - 512, VY: s.VY + int32(v>>10&0x3ff) - 512}
}

// Shot is a shot without its handle.
type Shot struct {
	ID           uint64
	X, Y, VX, VY int32
	Left         int32 // ticks that it still lives
}

// Fly moves the shot for a tick, straight on.
func (s *Shot) Fly() {
	s.X, s.Y = wrap(s.X+s.VX), wrap(s.Y+s.VY)
	s.Left--
}

// Chase turns the shot towards its target before it flies, and reports whether it hits the target.
func (s *Shot) Chase(target *Ship) (hits bool) {
	dx, dy := wrap(target.X-s.X), wrap(target.Y-s.Y)
	s.VX += dx>>12 - s.VX>>6
	s.VY += dy>>12 - s.VY>>6
	return max(dx, -dx) < hit && max(dy, -dy) < hit
}

// Longer is the number of ticks by which a ship's last shot lives longer when the ship fires again.
const Longer = 8

// Damage returns the loss of the target's hull in a hit.
func (s *Shot) Damage() int32 { return 5 + int32(s.ID>>60) }

func wrap(v int32) int32 { return v << 12 >> 12 }

// Digest returns a number for the ship. Last is the ID of the ship's last shot, or 0 if that shot
// is gone.
func (s *Ship) Digest(last uint64) uint64 {
	var sum Sum
	sum.Add(uint64(s.ID)<<32 | uint64(uint32(s.Hull)))
	sum.Add(uint64(uint32(s.X))<<32 | uint64(uint32(s.Y)))
	sum.Add(uint64(uint32(s.VX))<<32 | uint64(uint32(s.VY)))
	sum.Add(last)
	return uint64(sum)
}

// Digest returns a number for the shot. Target is the ID of the shot's target, or 0 if the target
// is gone.
func (s *Shot) Digest(target uint32) uint64 {
	var sum Sum
	sum.Add(s.ID)
	sum.Add(uint64(uint32(s.X))<<32 | uint64(uint32(s.Y)))
	sum.Add(uint64(uint32(s.VX))<<32 | uint64(uint32(s.VY)))
	sum.Add(uint64(uint32(s.Left))<<32 | uint64(target))
	return uint64(sum)
}

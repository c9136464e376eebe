package work

// The limits of the program rollback.
const (
	RollbackTicks = 3000
	Matches       = 32   // at the same time
	Players       = 4    // of a match
	MostUnits     = 256  // of a match
	GroundSize    = 4096 // bytes of a match's ground
	MostLate      = 7    // ticks by which an input arrives late, at most

	reach = 40 << 8 // the distance at which a unit shoots, in each direction
)

// MatchTicks returns the number of ticks of a match: the match with a number in a place. The places
// count from 0 to Matches-1, and the matches of each place count from 0.
func MatchTicks(place, number int) int {
	return 600 + int(Mix(uint64(place)<<32|uint64(number))%1200)
}

// Reports reports whether a match reports its hash after one of its ticks.
func Reports(tick int) bool { return tick%16 == 15 }

// Input is the keys that a player pressed in a tick of a match.
type Input struct {
	Place, Player int
	Tick          int // of the match
	Keys          uint32
}

// Inputs is the stream of inputs that the server gets. Its zero value is the stream's start.
type Inputs struct {
	tick int // of the server, the next one
	next int // which of the tick's candidates
	live [Matches]struct{ number, start, ticks int }
}

// Tick goes on to the next tick's inputs. It returns false after the last tick.
func (in *Inputs) Tick() bool {
	for place := range in.live {
		if m := &in.live[place]; in.tick == 0 || in.tick == m.start+m.ticks {
			if in.tick > 0 {
				m.number++
			}
			m.start, m.ticks = in.tick, MatchTicks(place, m.number)
		}
	}
	in.next = 0
	in.tick++
	return in.tick <= RollbackTicks
}

// Next returns the next input that arrives in the tick, and false after the last one. Each player
// sends an input for each tick of the match. It arrives in this tick or up to MostLate ticks later,
// and at the latest in the match's last tick. Each arrives once.
func (in *Inputs) Next() (Input, bool) {
	for in.next < Matches*(MostLate+1)*Players {
		place, late, player := in.next/Players%Matches, in.next/Players/Matches, in.next%Players
		in.next++
		m := &in.live[place]
		tick := in.tick - 1 - m.start - late
		v := Mix(uint64(place)<<48 | uint64(m.number)<<24 | uint64(player))
		if tick >= 0 && late == min(delay(v, tick), m.ticks-1-tick) {
			return Input{place, player, tick, keys(v, tick)}, true
		}
	}
	return Input{}, false
}

// delay returns the ticks by which a player's input is late. Half of the inputs are in time.
func delay(player uint64, tick int) int {
	v := Mix(player + uint64(tick))
	if v&1 == 0 {
		return 0
	}
	return 1 + int(v>>1%MostLate)
}

// keys returns the keys that a player presses in a tick. They change every few ticks.
func keys(player uint64, tick int) uint32 {
	return uint32(Mix(player ^ uint64(tick+int(player%9))/9<<20))
}

// Unit is a unit without its target.
type Unit struct {
	ID           uint32
	Owner        uint32 // the number of its player
	Hull         int32
	X, Y, VX, VY int32
}

// Builds reports whether a player gets a new unit in a tick.
func Builds(keys uint32, tick int) bool { return (keys>>20+uint32(tick))%32 == 0 }

// NewUnit returns the unit of a player with an ID. The IDs of a match count from 1.
func NewUnit(owner, id uint32) Unit {
	v := Mix(uint64(owner)<<32 | uint64(id))
	return Unit{ID: id, Owner: owner, Hull: 60 + int32(v>>50%64), X: wrap(int32(v)), Y: wrap(int32(v >> 24))}
}

// Move moves the unit for a tick by the keys of its player, and marks the ground below it.
func (u *Unit) Move(keys uint32, ground []byte) {
	turn := keys ^ u.ID*2654435761
	u.VX += int32(turn>>3&63) - 31 - u.VX>>4
	u.VY += int32(turn>>11&63) - 31 - u.VY>>4
	u.X, u.Y = wrap(u.X+u.VX), wrap(u.Y+u.VY)
	ground[uint32(u.Y+edge)>>14<<6|uint32(u.X+edge)>>14]++ // one of 4096
}

// Shoot returns the loss of the target's hull in a tick: 0 if the target isn't in reach. It depends
// only on the places and IDs of the two units.
func (u *Unit) Shoot(target *Unit) int32 {
	if u.Distance(target) >= reach {
		return 0
	}
	return 1 + int32((u.ID^target.ID)&3)
}

// Distance returns the distance of two units: the larger one of those in each direction.
func (u *Unit) Distance(v *Unit) int32 {
	dx, dy := wrap(u.X-v.X), wrap(u.Y-v.Y)
	return max(dx, -dx, dy, -dy)
}

// Looks reports whether the unit looks for a target in a tick, if it has none.
func (u *Unit) Looks(tick int) bool { return (u.ID+uint32(tick))%8 == 0 }

// Digest returns a number for the unit. Target is the ID of the unit's target, or 0 if the target
// is gone.
func (u *Unit) Digest(target uint32) uint64 {
	var sum Sum
	sum.Add(uint64(u.ID)<<32 | uint64(uint32(u.Hull)))
	sum.Add(uint64(uint32(u.X))<<32 | uint64(uint32(u.Y)))
	sum.Add(uint64(uint32(u.VX))<<32 | uint64(uint32(u.VY)))
	sum.Add(uint64(u.Owner)<<32 | uint64(target))
	return uint64(sum)
}

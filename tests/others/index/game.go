package index

// The game: how many there are of everything, and the rules, which are the same for each world. The
// rules use whole numbers, so each machine plays the same game.
const (
	entities = 20000
	ticks    = 8 // of history
	rays     = 64
	calm     = 200 // ticks between an entity's entrances
	watchful = 10  // one of so many looks around in a tick
	sight    = 512
)

// shot is where a player aimed, age ticks ago.
type shot struct {
	at  Box
	age uint64
}

// dice returns a number that depends on a and b alone.
func dice(a, b uint64) uint64 {
	x := a*0x9E3779B97F4A7C15 ^ b*0xC2B2AE3D27D4EB4F
	x ^= x >> 29
	x *= 0xBF58476D1CE4E5B9
	return x ^ x>>32
}

// place returns the box where an entity enters in a tick.
func place(number uint32, tick uint64) Box {
	d := dice(uint64(number), tick^0x5851)
	x, y := int32(d%(side-reach)), int32(d>>20%(side-reach))
	size := int32(16 + d>>40%64)
	return Box{x, y, x + size, y + size}
}

// walk returns the next box of an entity, which changes its course from time to time, and turns
// back at the world's edge.
func walk(number uint32, tick uint64, from Box) Box {
	d := dice(uint64(number), tick/32)
	dx, dy := int32(d%128)-64, int32(d>>8%128)-64
	to := Box{from.MinX + dx, from.MinY + dy, from.MaxX + dx, from.MaxY + dy}
	if to.fits() {
		return to
	}
	if to = (Box{from.MinX - dx, from.MinY - dy, from.MaxX - dx, from.MaxY - dy}); to.fits() {
		return to
	}
	return from
}

func fill(w world) error {
	for number := range uint32(entities) {
		if err := w.insert(number, place(number, 0)); err != nil {
			return err
		}
	}
	return nil
}

// play plays a tick, and returns the sum of everything that entities saw.
func play(w world, tick uint64) (sum uint64, err error) {
	for number := range uint32(entities) {
		if (tick+uint64(number))%calm == 0 {
			w.remove(number)
			if err := w.insert(number, place(number, tick)); err != nil {
				return 0, err
			}
			continue
		}
		if err := w.move(number, walk(number, tick, w.at(number))); err != nil {
			return 0, err
		}
	}
	for number := uint32(tick % watchful); number < entities; number += watchful {
		at := w.at(number)
		sum += w.near(Box{at.MinX - sight, at.MinY - sight, at.MaxX + sight, at.MaxY + sight})
	}
	return sum, nil
}

// shoot has players shoot at places as they were up to seven ticks ago, the oldest first.
func shoot(w world, tick uint64, shots *[rays]shot) (sum uint64, err error) {
	for i := range shots {
		at := place(uint32(i), tick)
		shots[i] = shot{Box{at.MinX, at.MinY, at.MinX + 256, at.MinY + 256}, min(tick, ticks-1-uint64(i)*ticks/rays)}
	}
	return w.look(tick, shots)
}

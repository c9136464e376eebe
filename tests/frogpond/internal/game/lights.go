package game

import "github.com/upfront-mem/upfront/tests/frogpond/internal/doom"

// light is a sector's light that changes by itself.
type light struct {
	Kind         doom.LightKind
	Up           uint8 // Glow: 1 while it gets brighter
	Sector       uint16
	Low, High    int16
	Bright, Dark int32 // Strobe: ticks
	Left         int32 // ticks until it changes
}

const (
	flash    = 5 // ticks of a strobe's bright phase
	glowStep = 8
)

func (w *World) light(c *doom.Sector, kind doom.LightKind, dark int32) bool {
	if kind == doom.SteadyLight || len(w.lights) == cap(w.lights) {
		return false
	}
	n := light{Kind: kind, Sector: c.Number, Low: w.Darkest(c), High: c.Light, Bright: flash, Dark: dark, Left: 1}
	switch kind {
	case doom.Flicker:
		n.Left = 1 + w.chance(c.Number, 64)
	case doom.Fire:
		n.Low += 16
		n.Left = 4
	case doom.Strobe, doom.StrobeInStep:
		if n.Low == n.High {
			n.Low = 0
		}
		if kind == doom.Strobe {
			n.Left = 1 + w.chance(c.Number, 7)
		}
	}
	w.lights = append(w.lights, n)
	w.Room.LightCount++
	return true
}

// chance returns a random number with the bits of a mask, as Doom does.
func (w *World) chance(sector uint16, mask int32) int32 {
	return int32(doom.Random(w.Room.Seed^0x119, w.Room.Tick, uint32(sector))) & mask
}

// SetLight sets a sector's light.
func (w *World) SetLight(c *doom.Sector, e *doom.Effect) bool {
	c.Light = w.LightLevel(c, e)
	return true
}

// Strobe makes a sector's light go on and off. It reports whether it began.
func (w *World) Strobe(c *doom.Sector, e *doom.Effect) bool {
	for i := range w.lights {
		if w.lights[i].Sector == c.Number {
			return false
		}
	}
	return w.light(c, doom.Strobe, e.Wait)
}

// shine plays a tick of each light.
func (w *World) shine() {
	for i := range w.lights {
		n := &w.lights[i]
		c := &w.Sectors[n.Sector]
		if n.Kind == doom.Glow {
			n.glow(c)
			continue
		}
		if n.Left--; n.Left > 0 {
			continue
		}
		switch n.Kind {
		case doom.Fire:
			// As in Doom, this compares the current light, not High. Low is above High if no
			// neighbour is darker.
			if less := int16(w.chance(n.Sector, 3)) * 16; c.Light-less < n.Low {
				c.Light = n.Low
			} else {
				c.Light = n.High - less
			}
			n.Left = 4
		case doom.Flicker:
			if c.Light == n.High {
				c.Light, n.Left = n.Low, 1+w.chance(n.Sector, 7)
			} else {
				c.Light, n.Left = n.High, 1+w.chance(n.Sector, 64)
			}
		default:
			if c.Light == n.Low {
				c.Light, n.Left = n.High, n.Bright
			} else {
				c.Light, n.Left = n.Low, n.Dark
			}
		}
	}
}

// glow plays a tick of a light that fades down and up again.
func (n *light) glow(c *doom.Sector) {
	step := int16(-glowStep)
	if n.Up != 0 {
		step = glowStep
	}
	next := int32(c.Light) + int32(step)
	if next <= int32(n.Low) && step < 0 || next >= int32(n.High) && step > 0 {
		n.Up ^= 1
		return
	}
	c.Light = int16(next)
}

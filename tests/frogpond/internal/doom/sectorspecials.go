package doom

// LightKind is the way a sector's light changes by itself.
type LightKind uint8

// The kinds of lights. Strobes in step flash at the same ticks if their times are the same.
const (
	SteadyLight LightKind = iota
	Flicker               // short off, long on, at random
	Fire                  // flickers near its own level
	Glow                  // fades down and up
	Strobe
	StrobeInStep
)

// SectorSpecial is the meaning of a sector's type.
type SectorSpecial struct {
	Light   LightKind
	Dark    int32 // Strobe: ticks between two flashes
	Harm    int32 // to players on the floor, every 32 ticks
	Exit    bool  // a player that is nearly dead exits
	Secret  bool  // counted when found
	CloseIn int32 // ticks until the sector, an open door, closes
	RaiseIn int32 // ticks until the sector, a closed door, opens and closes again
}

const fastDark = 15

var sectorSpecials = [32]SectorSpecial{
	1:  {Light: Flicker},
	2:  {Light: Strobe, Dark: fastDark},
	3:  {Light: Strobe, Dark: slowDark},
	4:  {Light: Strobe, Dark: fastDark, Harm: 20},
	5:  {Harm: 10},
	7:  {Harm: 5},
	8:  {Light: Glow},
	9:  {Secret: true},
	10: {CloseIn: halfMin},
	11: {Harm: 20, Exit: true},
	12: {Light: StrobeInStep, Dark: slowDark},
	13: {Light: StrobeInStep, Dark: fastDark},
	14: {RaiseIn: 10 * halfMin},
	16: {Harm: 20},
	17: {Light: Fire},
}

// SectorSpecialOf returns the meaning of a sector's type. From 32 on the type has Boom's bits:
// light, harm, secret. Boom's bits for friction and wind have no effect.
func SectorSpecialOf(kind uint16) SectorSpecial {
	if kind < 32 {
		return sectorSpecials[kind]
	}
	s := SectorSpecial{Light: sectorSpecials[kind&31].Light, Dark: sectorSpecials[kind&31].Dark}
	s.Harm = [...]int32{0, 5, 10, 20}[kind>>5&3]
	s.Secret = kind>>7&1 != 0
	return s
}

package game

// Seen is a thing that a player is shown.
type Seen struct {
	Number  uint16 // of the player, the frog's place in the pool, the sector
	X, Y    int16  // in map units; of a sector the floor and the ceiling
	Kind    uint8
	Heading uint8 // of the compass
}

// Kinds of what is seen: players, frogs, and sectors whose floor or ceiling isn't where it was
// loaded.
const (
	SeenPlayer = 1 + iota
	SeenFrog
	SeenSector
)

// See appends what a player sees, in the order of kind and number, until list is full; whole says
// whether all fitted. player < 0 is a watcher, who sees everything.
func (g *Game) See(c *Crew, player int, list []Seen) (seen []Seen, whole bool) {
	return list, true
}

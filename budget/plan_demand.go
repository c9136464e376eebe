package budget

import (
	"fmt"
	"slices"
)

// Demand is what a plan says of something that the system may refuse.
type Demand uint8

const (
	Default  Demand = iota // what is written beside it
	Off                    // isn't asked for
	Wished                 // reported where it wasn't granted
	Required               // else Open fails and says what to do
)

var demandNames = [...]string{"default", "off", "wished", "required"}

// String is "default", "off", "wished" or "required".
func (d Demand) String() string {
	if int(d) < len(demandNames) {
		return demandNames[d]
	}
	return fmt.Sprintf("Demand(%d)", uint8(d))
}

// parseDemand reads a demand that is one: Default has no word.
func parseDemand(text string) (Demand, error) {
	i := slices.Index(demandNames[Off:], text)
	if i < 0 {
		return Default, errNotDemand
	}
	return Off + Demand(i), nil
}

// pageDemand is a demand and its key in the plan's JSON.
type pageDemand struct {
	key    string
	demand Demand
}

func (p Pages) list() []pageDemand {
	return []pageDemand{{"prefault", p.Prefault}, {"lock", p.Lock}, {"huge", p.Huge}, {"guards", p.Guards}, {"base", p.Base}}
}

// orDefault fills in what is Default.
func (p Pages) orDefault(base uint64) Pages {
	fill := func(d *Demand, usual Demand) {
		if *d == Default {
			*d = usual
		}
	}
	fill(&p.Prefault, Wished)
	fill(&p.Lock, Off)
	fill(&p.Huge, Off)
	fill(&p.Guards, Off)
	if base != 0 {
		fill(&p.Base, Wished)
	}
	fill(&p.Base, Off)
	return p
}

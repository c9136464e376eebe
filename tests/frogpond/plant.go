package main

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
)

// A plant is a typical fault of a game, made on purpose: a tick depends on data that is neither
// state nor input.
type plant string

// The plants: a field depends on an address; a variable outside of the state isn't restored; the
// order of players is that of a Go map.
const (
	plantNone    plant = ""
	plantAddress plant = "address"
	plantReset   plant = "reset"
	plantOrder   plant = "order"
)

var plants = []string{string(plantAddress), string(plantReset), string(plantOrder)}

var words = scope.Plain[uint64]()

// forgotten is a variable that no restore resets.
var forgotten uint32

// byName has the players' numbers in a Go map, which has no fixed order.
var byName = map[string]int{"anna": 0, "bob": 1, "cleo": 2, "dora": 3, "emil": 4, "finn": 5,
	"gus": 6, "hugo": 7}

// into commits the fault: it changes the state of g.
func (p plant) into(b *budget.Budget, g *game.Game) {
	l := g.Level
	switch p {
	case plantAddress:
		l.Room.Voices = uint64(uintptr(unsafe.Pointer(words.TryNew(b.Frame()))))
	case plantReset:
		forgotten++
		l.Players.At(0).Secrets = forgotten
	case plantOrder:
		for _, i := range byName {
			if i < l.Players.Cap() {
				l.Players.At(i).Heading = l.Room.Tick & 15
				break
			}
		}
	}
}

// Set implements [flag.Value].
func (p *plant) Set(text string) error {
	for _, known := range plants {
		if text == known {
			*p = plant(text)
			return nil
		}
	}
	return fmt.Errorf("a plant is one of %s", strings.Join(plants, ", "))
}

func (p *plant) String() string { return string(*p) }

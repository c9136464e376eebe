package game

import (
	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// Level is a map in play: it, and who lives there. The struct is a Go value that points into the
// region level, and is gone with it.
type Level struct {
	doom.Level
	Frogs   scope.Pool[Frog]
	Players scope.Pool[Player]
}

var (
	frogMaker   = scope.Plain[Frog]()
	playerMaker = scope.Plain[Player]()
	pointMaker  = scope.Plain[doom.Point]()
	wordMaker   = scope.Plain[uint16]()
	countMaker  = scope.Plain[uint32]()
)

// loadLevel makes the level of m in s.
func loadLevel(s scope.Scope, base arena.Base, m doom.Map, systems *Systems, players int) (*Level, error) {
	read, err := m.Load(s, base)
	if err != nil {
		return nil, err
	}
	l := &Level{Level: read}
	// As many frogs as the map has things, but no more than the grid can hold.
	l.Frogs = frogMaker.Pool(s, min(len(l.Things), systems.grid.capacity()))
	l.Players = playerMaker.Pool(s, players)
	systems.Note(m.Name, "loaded", uint64(len(l.Lines)))
	s.Defer(func() { systems.Note(m.Name, "closed", uint64(len(l.Lines))) })
	return l, nil
}

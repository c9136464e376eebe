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
	Frogs   frogs
	Players scope.Pool[Player]
	World   *World
	system  *frogSystem
	here    scope.Addr[frogSystem] // of system, for what lies in a region and knows it
	voices  scope.ObjectPool[voice]
}

var (
	frogMaker   = scope.Plain[Frog]()
	playerMaker = scope.Plain[Player]()
	pointMaker  = scope.Plain[doom.Point]()
	wordMaker   = scope.Plain[uint16]()
	countMaker  = scope.Plain[uint32]()
)

// loadLevel makes the level of m in s.
func loadLevel(s scope.Scope, base arena.Base, m doom.Map, systems *Systems, players int,
	logName string) (*Level, error) {
	read, err := m.Load(s, base)
	if err != nil {
		return nil, err
	}
	l := &Level{Level: read}
	// As many frogs as the map has things, but no more than the grid can hold.
	frogs := min(len(l.Things), systems.grid.capacity())
	if err := l.openFrogSystem(s, logName, frogs); err != nil {
		return nil, err
	}
	l.Players = playerMaker.Pool(s, players)
	if l.World, err = newWorld(s, l); err != nil {
		return nil, err
	}
	l.Note("loaded", uint64(len(l.Lines)))
	return l, nil
}

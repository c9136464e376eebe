package game

import (
	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// Level is a loaded map. The struct is a Go value that points into a region, and is valid until the
// region is rewound. The region holds first the map and the graph, which never change, and then the
// state. Last come parts that aren't saved: the log, tables that each tick fills again, and the
// bots' brains.
type Level struct {
	doom.Level
	Room       *Room
	Snapshots  *save.Ring // of snapshots of the state
	StateBytes uint64     // from the room to the end of the state
	Frogs      frogs
	Players    scope.Pool[Player]
	World      *World
	voices     scope.Pool[voice]
	events     []event

	loaded []doom.Sector // the sectors as in the file
	state  *save.State
	made   Room // the room's slices as made, with counts of 0
	system *frogSystem
	here   scope.Addr[Room] // the room's address, for objects in other regions
	grid   grid
	brains []brain // by player
	inputs []Input // that the brains made
	sights sights  // bodies that players saw; empty in a level of Load
}

var (
	frogMaker   = scope.Plain[Frog]()
	playerMaker = scope.Plain[Player]()
	brainMaker  = scope.Plain[brain]()
	inputMaker  = scope.Plain[Input]()
	pointMaker  = scope.Plain[doom.Point]()
	wordMaker   = scope.Plain[uint16]()
	countMaker  = scope.Plain[uint32]()
	indexMaker  = scope.Plain[int32]()
)

// loadLevel makes the level of m in s, with space for the players and snapshots, and for sights if
// shown. It draws the chart with scratch. Each part has a label, so that a report shows its size.
func loadLevel(region budget.Region, s scope.Scope, m doom.Map, scratch scope.Scratch,
	players, snapshots int, shown bool, logName string) (*Level, error) {
	l := &Level{}
	l.World = &World{Level: l}
	for _, part := range []struct {
		label string
		make  func() error
	}{
		{"map", func() error { return l.read(s, m, region.Base(), scratch) }},
		{"script", func() error { l.World.findThings(s); return l.World.loadScript(s) }},
		{"state", func() error { return l.makeState(region, s, players) }},
		{"snapshots", func() error { l.keepSnapshots(s, snapshots); return nil }},
		{"play", func() error { return l.openPlay(s, players, logName) }},
		{"sights", func() error {
			if shown {
				l.sights = newSights(s, players, l.Frogs.Cap())
			}
			return nil
		}},
	} {
		if err := scope.Label(s, part.label, part.make); err != nil {
			return nil, err
		}
	}
	l.Note("loaded", uint64(len(l.Lines)))
	return l, nil
}

func (l *Level) read(s scope.Scope, m doom.Map, base arena.Base, scratch scope.Scratch) (err error) {
	if l.Level, err = m.Load(s, base); err != nil {
		return err
	}
	l.loaded = l.Sectors
	return l.drawChart(scratch)
}

// openPlay makes the parts of a level that aren't saved.
func (l *Level) openPlay(s scope.Scope, players int, logName string) error {
	if err := l.openFrogSystem(s, logName); err != nil {
		return err
	}
	l.World.openScript(s)
	l.grid = newGrid(s, l.Frogs.Cap())
	l.brains, l.inputs = brainMaker.Slice(s, players), inputMaker.Slice(s, players)
	return nil
}

package game

import (
	"context"
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// Options configure a server.
type Options struct {
	WADs      []string // files, or doom.Builtin
	Maps      string   // names with commas, or all
	Log       string   // a file
	Ticks     int      // of a map, at most; the systems have space for their durations
	Workers   int      // goroutines that decide
	Snapshots int      // space for snapshots in a level; 0 means one
	Seed      uint64   // of the built-in maps
}

// Server holds the results of boot: the maps, the systems, and the crew.
type Server struct {
	Budget  *budget.Budget
	Maps    []doom.Map
	Systems *Systems // nil after a failed load
	crew    *Crew    // nil after Open: the caller has crews of its own
	log     string   // the name of the log file

	Timeline *timeline.Timeline // sampled by the caller; may be nil

	snapshots int
}

// Boot loads the regions init and systems, and starts the crew. After an error, ErrFull included,
// the caller closes or rewinds both regions.
func Boot(ctx context.Context, o Options, b *budget.Budget) (*Server, error) {
	s, err := Open(ctx, o, b)
	if err != nil {
		return nil, err
	}
	s.crew = newCrew(b, o.Workers)
	if err := s.LoadSystems(ctx, o); err != nil {
		s.crew.stop()
		return nil, err
	}
	return s, nil
}

// Open loads only the region init, for callers without systems and with their own crews ([Alone]).
func Open(ctx context.Context, o Options, b *budget.Budget) (*Server, error) {
	library, err := budget.Load(ctx, b.Region("init"), func(s scope.Scope) (*doom.Library, error) {
		return doom.OpenLibrary(s, o.WADs, o.Seed)
	})
	if err != nil {
		return nil, err
	}
	maps, err := chooseMaps(library.Get(), o.Maps)
	if err != nil {
		return nil, err
	}
	return &Server{Budget: b, Maps: maps, log: o.Log, snapshots: max(1, o.Snapshots)}, nil
}

// LoadSystems loads the region systems, at the start and after a rewind.
func (s *Server) LoadSystems(ctx context.Context, o Options) error {
	region := s.Budget.Region("systems")
	systems, err := budget.Load(ctx, region, func(in scope.Scope) (*Systems, error) {
		return loadSystems(in, o.Log, o.Ticks)
	})
	s.Systems = systems.Get()
	return err
}

// Seal ends boot: from here on the budget takes no memory from the system.
func (s *Server) Seal() error {
	err := s.Budget.Seal()
	s.Systems.log.note("budget", "sealed, bytes", s.Budget.Size())
	return err
}

// Load loads a map for that many players into the region level, where it stays until a rewind. If
// the map doesn't fit, Load returns ErrFull and the region is empty.
func (s *Server) Load(ctx context.Context, m doom.Map, players int) (*Level, error) {
	return s.load(ctx, s.Budget.Region("level"), s.crew, m, players, false)
}

// LoadInto is [Server.Load] into any region, such as a slot, with space for the sights of
// [Game.See]. It uses the second scratch arena of the crew's first worker.
func (s *Server) LoadInto(ctx context.Context, region budget.Region, crew *Crew, m doom.Map,
	players int) (*Level, error) {
	return s.load(ctx, region, crew, m, players, true)
}

func (s *Server) load(ctx context.Context, region budget.Region, crew *Crew, m doom.Map,
	players int, shown bool) (*Level, error) {
	level, err := budget.Load(ctx, region, func(in scope.Scope) (*Level, error) {
		return loadLevel(region, in, m, crew.workers[0].scratches[1], players, s.snapshots, shown,
			s.log)
	})
	return level.Get(), err
}

// Begin begins a game on a loaded map. The game ends when the level is rewound.
func (s *Server) Begin(level *Level, seed uint64) (*Game, error) {
	s.crew.full() // forget the error of an earlier game
	g := &Game{Level: level, budget: s.Budget, crew: s.crew}
	return g, g.begin(seed)
}

// BeginEmpty begins a game with every player away, until it enters ([Enter]).
func (s *Server) BeginEmpty(level *Level, seed uint64) (*Game, error) {
	g := &Game{Level: level, budget: s.Budget, crew: s.crew}
	if err := g.begin(seed); err != nil {
		return nil, err
	}
	for i := range level.Players.Cap() {
		level.Players.At(i).Away = 1
	}
	return g, nil
}

// Stop ends the workers' goroutines.
func (s *Server) Stop() { s.crew.stop() }

func chooseMaps(library *doom.Library, names string) ([]doom.Map, error) {
	all, err := library.Maps()
	if err != nil || names == "all" {
		return all, err
	}
	var chosen []doom.Map
	for name := range strings.SplitSeq(names, ",") {
		name = strings.ToUpper(strings.TrimSpace(name))
		before := len(chosen)
		for _, m := range all {
			if m.Name == name {
				chosen = append(chosen, m)
			}
		}
		if len(chosen) == before {
			return nil, noMap(library, all, name)
		}
	}
	return chosen, nil
}

func noMap(library *doom.Library, all []doom.Map, name string) error {
	var known, files []string
	for _, m := range all {
		known = append(known, m.Name)
	}
	for _, w := range library.WADs {
		files = append(files, w.Name)
	}
	return fmt.Errorf("-maps: no map %q in %s; its maps are %s",
		name, strings.Join(files, ", "), strings.Join(known, " "))
}

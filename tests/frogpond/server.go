package main

import (
	"context"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// Server is what boot leaves: the maps that there are, the systems, and the crew.
type Server struct {
	budget  *budget.Budget
	maps    []Map
	crew    *Crew
	systems *Systems
}

// boot loads init and the systems. Whatever fails, full included, leaves both to the caller's Close or Rewind.
func boot(ctx context.Context, o *options, b *budget.Budget) (*Server, error) {
	library, err := budget.Load(ctx, b.Region("init"), func(s scope.Scope) (*Library, error) {
		return openLibrary(s, o.wads, o.seed)
	})
	if err != nil {
		return nil, err
	}
	maps, err := chooseMaps(library.Get().WADs, o.maps)
	if err != nil {
		return nil, err
	}
	s := &Server{budget: b, maps: maps, crew: newCrew(b, o.workers)}
	if err := s.loadSystems(ctx, o); err != nil {
		s.crew.stop()
		return nil, err
	}
	return s, nil
}

// loadSystems builds the systems, at the start and after they were rewound.
func (s *Server) loadSystems(ctx context.Context, o *options) error {
	region := s.budget.Region("systems")
	systems, err := budget.Load(ctx, region, func(in scope.Scope) (*Systems, error) {
		return loadSystems(in, region.Base(), o.log, o.ticks)
	})
	s.systems = systems.Get()
	return err
}

func (s *Server) game() *Game {
	return &Game{budget: s.budget, systems: s.systems, crew: s.crew}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
)

type outcome struct {
	level, mod string
	ticks      int
	room       game.Room // after the last tick
	hash       doom.Hash // after the last tick
	chosen     int       // choices of the mod
	thrownOut  error     // the reason, or nil
	in         int       // the tick
	left       uint64    // bytes that the mod hasn't freed
}

// play plays a map with the mod, and goes on without it if the mod is thrown out.
func (m *mods) play(ctx context.Context, s *game.Server, at doom.Map) (p outcome, err error) {
	before := m.live()
	level, err := s.Load(ctx, at, m.bots)
	if err != nil {
		return p, err
	}
	g, err := s.Begin(level, m.Seed)
	if err != nil {
		return p, err
	}
	p.level, p.mod = at.Name, filepath.Base(m.file)
	x, refused := m.instantiate(ctx, g)
	p.thrownOut = refused
	for ; p.ticks < m.Ticks && ctx.Err() == nil; p.ticks++ {
		if p.thrownOut == nil {
			p.choose(ctx, x, g)
		}
		if err := g.Step(); err != nil {
			return p, err
		}
	}
	if p.thrownOut == nil {
		err = x.module.Close(ctx)
	}
	p.room, p.hash, p.left = *level.Room, g.Hash(), m.live()-before
	return p, errors.Join(err, ctx.Err(), s.Budget.Region("level").Rewind(context.WithoutCancel(ctx)))
}

// live returns the bytes in use by mods.
func (m *mods) live() (bytes uint64) {
	m.shared.Locked(func() { bytes = m.heap.Stats().Used })
	return bytes
}

// choose lets the mod choose for this tick, or throws it out.
func (p *outcome) choose(ctx context.Context, x *mod, g *game.Game) {
	g.Choices = x.choices
	if p.thrownOut = x.choose(ctx, g); p.thrownOut != nil {
		p.in, g.Choices = p.ticks, nil
		p.thrownOut = errors.Join(p.thrownOut, x.module.Close(ctx))
	}
	p.chosen = x.chosen
}

func (p outcome) String() string {
	text := fmt.Sprintf("%s: %d ticks, %d frogs, %d caught; %s chose %d times", p.level, p.ticks,
		p.room.Spawned, p.room.Caught, p.mod, p.chosen)
	if p.thrownOut != nil {
		// wazero's error goes on with the guest's stack
		why, _, _ := strings.Cut(p.thrownOut.Error(), "\n")
		text += fmt.Sprintf(", and was thrown out in tick %d: %s", p.in, why)
	}
	if p.left != 0 {
		text += fmt.Sprintf("; %d bytes of it are left", p.left)
	}
	return text
}

//go:build linux

package serve

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/web"
)

// seenBy returns a server whose first room has players that walk and spawn frogs.
func seenBy(t testing.TB, players int) *Server {
	t.Helper()
	s := built(t, func(o *Options) { o.HTTP = "127.0.0.1:0" })
	for i := range players {
		s.seat(i, "walker")
	}
	s.ticks(1)
	for range 40 {
		for i := range players {
			m := message{what: wants, tick: s.rooms[0].play.tick, count: 1, epoch: s.rooms[0].play.epoch()}
			at := s.rooms[0].play.level.Player(i).At
			m.inputs[0].Heading, m.inputs[0].Flags = uint8(3+i), uint8(game.Walk|game.Spawn)
			m.inputs[0].X, m.inputs[0].Y = int16(at.X>>doom.UnitBits)+48, int16(at.Y>>doom.UnitBits)
			s.hears(i, m)
		}
		s.ticks(1)
	}
	return s
}

// asks lets the worker of the first room tick until a viewer has a scene, and returns the scene. A
// viewer that waited too long, on a busy machine, asks again.
func (s *Server) asks(t *testing.T) *web.Scene {
	t.Helper()
	got := make(chan *web.Scene, 1)
	ask := func() { got <- shown{s}.Scene(0) }
	go ask()
	for {
		select {
		case scene := <-got:
			if scene != nil {
				return scene
			}
			go ask()
		default:
			s.rooms[0].show(s.workers[0])
			time.Sleep(time.Millisecond)
		}
	}
}

// A scene has each player, each frog and each sector that moved. Viewers don't change the state.
func TestScene(t *testing.T) {
	s := seenBy(t, 3)
	defer s.close(t)
	p := s.rooms[0].play
	before := p.game.Hash()
	scene := s.asks(t)
	require.NotNil(t, scene)
	assert.Equal(t, before, p.game.Hash())
	assert.Equal(t, p.level.Name, scene.Map)
	assert.Equal(t, p.tick, scene.Tick)
	assert.True(t, scene.Whole)
	require.Len(t, scene.Players, 3)
	for i, shown := range scene.Players {
		is := p.level.Player(i)
		assert.Equal(t, web.Player{Number: uint16(i), Name: "walker", X: int16(is.At.X >> doom.UnitBits),
			Y: int16(is.At.Y >> doom.UnitBits), Heading: uint8(is.Heading), Health: is.Health, Caught: is.Caught,
			Deaths: is.Deaths, Exits: is.Exits}, shown)
	}
	assert.NotEmpty(t, scene.Frogs)
	assert.Len(t, scene.Frogs, p.level.Frogs.Live())
	assert.Equal(t, []web.Brief{{Room: 0, Map: p.level.Name, Tick: p.tick, Players: 3}}, shown{s}.List())
}

// Between two maps, the scene of a room has no map. While no worker ticks, a viewer gets no scene,
// and may ask again.
func TestSceneOfNothing(t *testing.T) {
	s := seenBy(t, 1)
	defer s.close(t)
	assert.Nil(t, shown{s}.Scene(0), "nobody ticks")
	assert.Equal(t, idle, s.rooms[0].stage.state.Load())
	assert.NotNil(t, s.asks(t))
	r := s.rooms[0]
	p := r.play
	r.play = nil
	scene := s.asks(t)
	r.play = p
	require.NotNil(t, scene)
	assert.Empty(t, scene.Map)
	assert.Empty(t, scene.Players)
	s.visible.Store(nil)
	assert.Nil(t, shown{s}.Scene(0), "there are no rooms yet")
	assert.Empty(t, shown{s}.List())
}

// A room plays the same with viewers. The copy makes no Go allocation.
func TestScenesChangeNothing(t *testing.T) {
	var hashes [2]doom.Hash
	for i := range hashes {
		s := seenBy(t, 4)
		for range 200 {
			if i == 1 {
				s.rooms[0].stage.state.Store(asked)
			}
			s.ticks(1)
			if i == 1 {
				<-s.rooms[0].stage.filled
			}
		}
		hashes[i] = s.rooms[0].play.game.Hash()
		if i == 1 {
			assert.Zero(t, testing.AllocsPerRun(50, func() {
				s.rooms[0].stage.state.Store(asked)
				s.rooms[0].show(s.workers[0])
				<-s.rooms[0].stage.filled
			}))
		}
		s.close(t)
	}
	assert.Equal(t, hashes[0], hashes[1])
}

// BenchmarkShow measures the cost of pages to a tick, with and without a viewer.
func BenchmarkShow(b *testing.B) {
	for name, looked := range map[string]bool{"nobody": false, "somebody": true} {
		b.Run(name, func(b *testing.B) {
			s := seenBy(b, 4)
			defer s.close(b)
			r, w := s.rooms[0], s.workers[0]
			for b.Loop() {
				if looked {
					r.stage.state.Store(asked)
				}
				r.show(w)
				if looked {
					<-r.stage.filled
				}
			}
		})
	}
}

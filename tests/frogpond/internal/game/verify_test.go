package game

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// A forged state is refused, with the field's name, if a number that a tick indexes by, counts with
// or loops over can't occur in play.
func TestForgedFields(t *testing.T) {
	s := specialServer(t)
	f := newForger(t, s, s.Maps[0])
	g, l, w := f.g, f.g.Level, f.g.Level.World
	frog, mover := -1, -1
	for i := range l.Frogs.Cap() {
		if l.Frogs.At(i) != nil {
			frog = i
		}
	}
	for i := range w.movers.Cap() {
		if w.movers.At(i) != nil {
			mover = i
		}
	}
	if l.voices.Live() == 0 {
		*l.voices.Get() = voice{Left: 1}
	}
	voice := -1
	for i := range l.voices.Cap() {
		if l.voices.At(i) != nil {
			voice = i
		}
	}
	require.True(t, frog > 0 && mover >= 0 && voice >= 0)
	good := f.save()
	far := doom.Point{X: l.Max.X + 1, Y: l.Min.Y}
	free := 0
	for l.Frogs.At(free) != nil {
		free++
	}
	for want, forge := range map[string]func(){
		"a slice of the room differs from the level's": func() {
			l.Room.Frogs = arena.SliceOf(l.Base, l.Room.Frogs.Get(l.Base)[:1])
		},
		"the graph's instance is 0x0, not ":          func() { l.Room.Instance = 0 },
		"tick 2147483648: at most 2147483647":        func() { l.Room.Tick = 1 << 31 },
		"events heard of ":                           func() { l.Room.Heard = l.Room.Happened + 1 },
		"sector 1: its number is 0":                  func() { l.Sectors[1].Number = 0 },
		"sector 1: its flat is that of sector 10 of": func() { l.Sectors[1].Flat = 10 },
		"beyond the map":                             func() { l.Frogs.At(frog).At = far },
		"it is in sector 10 of 10":                   func() { l.Frogs.At(frog).Sector = 10 },
		"its heading is 16 of 16":                    func() { l.Frogs.At(frog).Heading = 16 },
		"it has no tick left":                        func() { l.Frogs.At(frog).Life = 0 },
		"of another place":                           func() { l.Frogs.handles[free] = l.Frogs.handles[frog] },
		"and its place has 0x0":                      func() { l.Frogs.handles[frog] = 0 },
		"player 1: it is at":                         func() { l.Players.At(1).At = far },
		"player 1: it is in sector 65535 of 10":      func() { l.Players.At(1).Sector = 65535 },
		"player 1: its heading is 4294967295 of 16":  func() { l.Players.At(1).Heading = 1<<32 - 1 },
		"player 1: its away is 2":                    func() { l.Players.At(1).Away = 2 },
		"player 1: it stands still for 71 ticks":     func() { l.Players.At(1).Still = maxStill + 1 },
		"player 1: its health is 0":                  func() { l.Players.At(1).Health = 0 },
		"player 1: its health is 101":                func() { l.Players.At(1).Health = 101 },
		"player 1: its keys are 0x8":                 func() { l.Players.At(1).Keys = 8 },
		"7 players of 8":                             func() { l.Players.Put(l.Players.At(7)) },
		"event 0: its kind is 5 of 4":                func() { l.events[0].Kind = 5 },
		"event 0: it is at": func() {
			l.events[0].Kind, l.events[0].At = died, far
		},
		"it sings for 0 ticks of 20":                     func() { l.voices.At(voice).Left = 0 },
		"it sings for 21 ticks of 20":                    func() { l.voices.At(voice).Left = songTicks + 1 },
		"lights, with room for ":                         func() { l.Room.LightCount = 1 << 31 },
		"light 0: it is in sector 10 of 10":              func() { w.lights[0].Sector = 10 },
		"light 0: its kind is 0 of 5":                    func() { w.lights[0].Kind = 0 },
		"light 0: its kind is 6 of 5":                    func() { w.lights[0].Kind = 6 },
		"light 0: its up is 2":                           func() { w.lights[0].Up = 2 },
		"0 scrolls and 1 carries; the level has 1 and 1": func() { l.Room.ScrollCount = 0 },
		"1 scrolls and 2 carries; the level has 1 and 1": func() { l.Room.CarryCount = 2 },
		"scroll 0: line 6 by 1; the level has line 5":    func() { w.scrolls[0].Line++ },
		"carry 0: {Step:":                                func() { w.carries[0].Step.X = 1 << 30 },
		"it is of sector 10 of 10":                       func() { w.movers.At(mover).Sector = 10 },
		"its plane is 3 of 2":                            func() { w.movers.At(mover).Plane = 3 },
		"its plane is 0 of 2":                            func() { w.movers.At(mover).Plane = 0 },
		"has another": func() {
			m := w.movers.Get()
			*m = *w.movers.At(mover)
		},
		"its state is 4, and then ": func() { w.movers.At(mover).State = 4 },
		"its state is 3, and then 0": func() {
			w.movers.At(mover).State, w.movers.At(mover).Next = waiting, 0
		},
		"its state is 1, and then 3": func() {
			w.movers.At(mover).State, w.movers.At(mover).Next = rising, waiting
		},
		"its action is 14": func() { w.movers.At(mover).Action = doom.Teleport },
		"its flat is that of sector 10 of 10": func() {
			w.movers.At(mover).Changes, w.movers.At(mover).Flat = true, 10
		},
	} {
		forge()
		file := f.save()
		number, err := l.Snapshots.Read(bytes.NewReader(good))
		require.NoError(t, err)
		require.NoError(t, l.Snapshots.Restore(t.Context(), number), want)
		before := g.Hash()
		_, err = l.Snapshots.Read(bytes.NewReader(file))
		if assert.ErrorContains(t, err, "the snapshot is a state that this program can't produce: ", want) {
			assert.ErrorContains(t, err, want)
		}
		require.Equal(t, before, g.Hash(), want)
	}
	require.NoError(t, g.Step())
}

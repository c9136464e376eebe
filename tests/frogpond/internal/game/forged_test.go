package game

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/step"
)

// forger changes valid saves of a map, and corrects their checksums.
type forger struct {
	t     testing.TB
	s     *Server
	g     *Game
	files [][]byte // in the order of their ticks
	image int      // offset of the snapshot in each
	busy  []int    // offsets of the words that aren't 0 in each file
}

// newForger plays a map with bots, with all its movers started, and saves it five times.
func newForger(t testing.TB, s *Server, m doom.Map) *forger {
	t.Helper()
	g, err := s.start(t, m, 8)
	require.NoError(t, err)
	f := &forger{t: t, s: s, g: g}
	w := g.Level.World
	w.script.runner.Begin()
	for i := range w.Lines { // start all movers
		if s := doom.SpecialOf(w.Lines[i].Special); s.Trigger != doom.Always {
			w.fireAs(g.Level.Players.At(0), i)
		}
	}
	w.script.runner.End()
	for _, ticks := range []int{0, 1, 30, 100, 250} {
		for range ticks {
			require.NoError(t, g.Step())
		}
		f.files = append(f.files, f.save())
	}
	f.image = len(f.files[0]) - g.Level.Snapshots.Size()
	for at := f.image; at+8 <= len(f.files[0]); at += 8 {
		for _, file := range f.files {
			if binary.LittleEndian.Uint64(file[at:]) != 0 {
				f.busy = append(f.busy, at)
				break
			}
		}
	}
	return f
}

func (f *forger) save() []byte {
	ring, tick := f.g.Level.Snapshots, uint64(f.g.Level.Room.Tick)
	require.NoError(f.t, ring.Take(tick))
	file, err := ring.AppendFile(nil, tick)
	require.NoError(f.t, err)
	return file
}

// boundary returns a value near the end of some range.
func (f *forger) boundary(r *rand.Rand) uint64 {
	sizes := []int{0, len(f.g.Level.Sectors), len(f.g.Level.Lines), f.g.Level.Frogs.Cap(),
		f.g.Level.Players.Cap(), f.g.Level.World.movers.Cap(), eventsLength, maxVoices, 16, 256,
		len(f.files[0]) - f.image}
	ends := []uint64{1<<7 - 1, 1 << 7, 1<<8 - 1, 1 << 15, 1<<16 - 1, 1<<31 - 1, 1 << 31, 1<<32 - 1,
		1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 1}
	if r.IntN(2) == 0 {
		return ends[r.IntN(len(ends))]
	}
	return uint64(sizes[r.IntN(len(sizes))] + r.IntN(3) - 1)
}

// place returns the offset of a random value of size bytes in the snapshot, mostly in a busy word.
func (f *forger) place(r *rand.Rand, size int) int {
	if r.IntN(8) != 0 {
		return f.busy[r.IntN(len(f.busy))] + r.IntN(8/size)*size
	}
	return f.image + r.IntN((len(f.files[0])-f.image)/size)*size
}

// forge returns a valid save with some changes: random and boundary values, swapped fields, and
// bytes of another tick.
func (f *forger) forge(r *rand.Rand) []byte {
	file := bytes.Clone(f.files[r.IntN(len(f.files))])
	for range 1 + r.IntN(3) {
		size := 1 << r.IntN(4)
		at, other := f.place(r, size), f.place(r, size)
		var word [8]byte
		switch r.IntN(6) {
		case 0:
			binary.LittleEndian.PutUint64(word[:], r.Uint64())
			copy(file[at:at+size], word[:])
		case 1, 2:
			binary.LittleEndian.PutUint64(word[:], f.boundary(r))
			copy(file[at:at+size], word[:])
		case 3:
			copy(word[:size], file[at:])
			copy(file[at:at+size], file[other:])
			copy(file[other:other+size], word[:size])
		case 4:
			copy(file[at:at+size], file[other:other+size])
		case 5:
			length := min(size*(1+r.IntN(64)), len(file)-at)
			copy(file[at:at+length], f.files[r.IntN(len(f.files))][at:])
		}
	}
	return f.rightSums(file)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// rightSums corrects the checksums in the header.
func (f *forger) rightSums(file []byte) []byte {
	binary.LittleEndian.PutUint32(file[44:], crc32.Checksum(file[f.image:], castagnoli))
	binary.LittleEndian.PutUint64(file[48:], uint64(crc32.Checksum(file[:48], castagnoli)))
	return file
}

// read restores a save and plays on. It returns false if the save is refused, and checks that it
// changed nothing then.
func (f *forger) read(file []byte) (played bool) {
	f.t.Helper()
	l := f.g.Level
	before := f.g.Hash()
	number, err := l.Snapshots.Read(bytes.NewReader(file))
	if err != nil {
		require.Equal(f.t, before, f.g.Hash())
		return false
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if err := l.Snapshots.Restore(f.t.Context(), number); err != nil {
		require.ErrorContains(f.t, err, "the graph's instance isn't live")
		number, err = l.Snapshots.Read(bytes.NewReader(f.files[0]))
		require.NoError(f.t, err)
		require.NoError(f.t, l.Snapshots.Restore(f.t.Context(), number))
		return false
	}
	for i := range 12 {
		require.NoError(f.t, f.g.Step(), "tick %d", i)
	}
	for i := range 3 {
		f.g.See(f.s.crew, i-1, make([]Seen, 0, 64))
	}
	after := f.g.Hash()
	number, err = l.Snapshots.Read(bytes.NewReader(f.save()))
	require.NoError(f.t, err, "of what was played from there")
	require.NoError(f.t, l.Snapshots.Restore(f.t.Context(), number))
	require.Equal(f.t, after, f.g.Hash())
	return true
}

// specialServer returns a server of one map, which has each special that the state can hold: doors,
// a lift, crushers, carrying floors, scrolling walls, and all lights.
func specialServer(t testing.TB) *Server {
	rooms := []room{{0, 128, 96, 0, 5, 0}, {0, 0, 160, 1, 1, 0}, {16, 128, 96, 2, 2, 0},
		{0, 96, 0, 10, 3, 0}, {0, 128, 200, 8, 4, 1}, {0, 0, 80, 14, 6, 1}, {8, 128, 0, 17, 7, 1},
		{0, 128, 96, 12, 8, 0}, {0, 96, 255, 5, 9, 2}, {0, 128, 96, 9, 10, 0}}
	lines := []special{{1, 0}, {2, 1}, {53, 2}, {6, 3}, {252, 4}, {48, 0}, {10, 7}, {17, 8}, {97, 5}}
	things := []int{0, 14, 3, 5, 5, 13}
	for i := range 40 {
		things = append(things, i%len(rooms), 2001)
	}
	return stripServer(t, rooms, lines, things...)
}

// Saves with correct checksums, but changes anywhere in the state, are refused or played. No tick
// faults, panics or hangs, and a save of the state after it can be read.
func TestForgedSaves(t *testing.T) {
	special := specialServer(t)
	forgers := []*forger{newForger(t, special, special.Maps[0])}
	w := forgers[0].g.Level.World
	require.NotZero(t, min(len(w.lights), len(w.scrolls), len(w.carries), w.movers.Live(),
		w.Frogs.Live(), len(w.keys), len(w.landings)))
	for _, m := range []int{0, 3} {
		s := openCrew(t, 1, doom.Builtin)
		forgers = append(forgers, newForger(t, s, s.Maps[m]))
	}
	for _, f := range forgers {
		for _, file := range f.files {
			require.True(t, f.read(file), "an honest one")
		}
	}
	count, played := step.Pick(300, 2000, 10000), 0
	for n := range count {
		f := forgers[n%2*(1+n/2%2)] // half of them on the map with all specials
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Fatalf("%s, forged save %d: %v\n%s", f.g.Level.Name, n, p, debug.Stack())
				}
			}()
			if f.read(f.forge(rand.New(rand.NewPCG(39, uint64(n))))) {
				played++
			}
		}()
	}
	t.Logf("%d of %d were played, the others refused", played, count)
	require.NotZero(t, played)
}

// FuzzState lets the fuzzer change a valid save and corrects the checksums. The save must be
// refused or played.
func FuzzState(f *testing.F) {
	folder, err := os.Getwd()
	require.NoError(f, err)
	s := specialServer(f)
	forger := newForger(f, s, s.Maps[0])
	f.Chdir(folder) // the folder where the fuzzer's workers begin
	f.Add(uint8(3), []byte{0, 1, 0, 0xff})
	for _, at := range []int{0, len(forger.busy) / 3, len(forger.busy) - 1} {
		place := uint16((forger.busy[at] - forger.image) / 8)
		f.Add(uint8(4), []byte{byte(place), byte(place >> 8), 2, 0xff, byte(place), byte(place >> 8), 7, 1})
	}
	f.Fuzz(func(t *testing.T, which uint8, changes []byte) {
		forger.t = t
		file := bytes.Clone(forger.files[int(which)%len(forger.files)])
		for ; len(changes) >= 4; changes = changes[4:] { // a word, a byte in it, a value
			at := forger.image + 8*int(binary.LittleEndian.Uint16(changes)) + int(changes[2]%8)
			file[forger.image+(at-forger.image)%(len(file)-forger.image)] = changes[3]
		}
		forger.read(forger.rightSums(file))
	})
}

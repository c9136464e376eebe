package save_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope/container"
)

// forged returns a file with changed bytes, and correct sums and fingerprint. The number of its
// snapshot is 2.
func forged(file []byte, at uint32, change []byte) []byte {
	b := bytes.Clone(file)
	copy(b[56+int(at)%(len(b)-56):], change)
	end := 56 + binary.LittleEndian.Uint64(b[8:])
	binary.LittleEndian.PutUint64(b[24:], 2)
	if of := save.FingerprintOf(string(b[56:end])); of != 0 {
		binary.LittleEndian.PutUint64(b[32:], of)
	}
	return resum(b)
}

// FuzzConvert: a file of an older program with any bytes is refused, and nothing changes, or it is
// a snapshot that play goes on from.
func FuzzConvert(f *testing.F) {
	b := newBuilding(f)
	file := written(f, b.ring, 1)
	shelf := newShelf(f, open(f, pondPlan()), 1)
	shelf.flies.Push(fly{At: 1})
	shelf.line.PushFront(2)
	shelf.ids.Set(3, 4)
	shelf.tiles.Set(tile{X: 1}, fly{})
	require.NoError(f, shelf.names.Set("ada", fly{}))
	require.NoError(f, shelf.ring.Take(1))
	shelved := written(f, shelf.ring, 1)
	hall, root, actors := newHall2(f, 1)
	require.NoError(f, hall.ring.Take(1))
	var x larger
	kept, _ := loadProgram(f, x.load)
	require.NoError(f, kept.ring.Take(1))
	for at := uint32(0); int(at) < len(file); at += 13 {
		f.Add(at, []byte{0xff})
		f.Add(at, []byte{3, 0, 0, 0, 0, 0, 0, 0, 1})
	}
	f.Fuzz(func(t *testing.T, at uint32, change []byte) {
		before := save.Image(hall.ring, 1)
		if number, err := hall.ring.Read(bytes.NewReader(forged(file, at, change))); err == nil {
			require.NoError(t, save.Hold(hall.ring, 3, save.Image(hall.ring, number)), "it passes as any from outside")
			require.NoError(t, hall.ring.Restore(background, number))
			base := hall.region.Base()
			for _, l := range root.Lamps.Get(base) {
				_ = l.Level
			}
			node := root.First.Get(base)
			for range 10 {
				if node != nil {
					node.Value++
					node = node.Next.Get(base)
				}
			}
			if a := actors.At(root.Best); a != nil {
				actors.Put(root.Best)
			}
			for range 10 {
				actors.Get()
			}
			require.NoError(t, hall.ring.Take(3))
			require.NoError(t, hall.ring.Restore(background, 1))
		}
		require.Equal(t, before, save.Image(hall.ring, 1))
		if number, err := kept.ring.Read(bytes.NewReader(forged(shelved, at, change))); err == nil {
			require.NoError(t, save.Hold(kept.ring, 3, save.Image(kept.ring, number)))
			require.NoError(t, kept.ring.Restore(background, number))
			x.play()
			require.NoError(t, kept.ring.Take(3))
			require.NoError(t, kept.ring.Restore(background, 1))
		}
	})
}

// larger is a shelf with larger containers.
type larger struct{ shelf }

func (x *larger) load(p *program, _ *room) {
	s := p.scope
	p.state.Version(1)
	x.flies = container.NewList(s, flyMaker, linesMost+1)
	x.line = container.NewDeque(s, countMaker, linesMost+3)
	x.tiles = container.NewMap(s, tileMaker, flyMaker, 2*linesMost)
	x.ids = container.NewMap(s, countMaker, countMaker, idsMost+20)
	x.names = container.NewStringMap(s, flyMaker, namesMost+1, nameMost+3)
}

func (x *larger) play() {
	for i := range int32(30) {
		x.flies.Push(fly{})
		x.line.PushFront(i)
		x.ids.Set(i, i)
		x.ids.Delete(i / 2)
		_ = x.names.Set(string(rune('a'+i%20)), fly{})
		x.names.Delete(string(rune('a' + i%7)))
	}
	for k, v := range x.tiles.All() {
		_, v.At = k, 1
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

type frog struct {
	X, Y int32
	Mood [2]uint8
	_    [6]byte
}

type pond struct {
	Tick  uint64
	Frogs arena.Slice[arena.Handle[frog]]
}

var (
	frogMaker   = scope.Plain[frog]()
	pondMaker   = scope.Plain[pond]()
	handleMaker = scope.Plain[arena.Handle[frog]]()
	stoneMaker  = scope.Plain[uint16]()
)

// writePonds writes snapshots of a small state to DIR/NAME.save, after play changed it.
func writePonds(t *testing.T, dir string, plan string, names []string, play func(i int, p *pond,
	frogs scope.HandlePool[frog], stones []uint16)) {
	b, err := budget.Open(budget.Plan{Name: plan, Regions: []budget.RegionPlan{{Name: "level",
		Size: 64 * budget.KiB, State: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	r := b.Region("level")
	var ring *save.Ring
	var frogs scope.HandlePool[frog]
	var stones []uint16
	root, err := budget.Load(context.Background(), r, func(s scope.Scope) (*pond, error) {
		state, root := save.Begin(r, s, pondMaker)
		frogs = frogMaker.HandlePool(s, 4)
		handles := handleMaker.Slice(s, 4)
		_, handles[0] = frogs.Get()
		root.Frogs = arena.SliceOf(r.Base(), handles)
		stones = stoneMaker.Slice(s, 8)
		ring = save.NewRing(s, 2, state)
		return root, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		play(i, root.Get(), frogs, stones)
		var file bytes.Buffer
		if err := ring.Take(uint64(i)); err != nil {
			t.Fatal(err)
		}
		if err := ring.Write(&file, uint64(i)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".save"), file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// asChecked returns a file as a checked build writes it.
func asChecked(t *testing.T, file []byte) []byte {
	layout := binary.LittleEndian.Uint64(file[8:])
	text := bytes.Replace(file[56:56+layout], []byte(`]}],"types"`),
		[]byte(`],"objects":[{"offset":176,"size":16,"type":"uint16",`+
			`"scope":"level","label":"stones","made":"game.load /game/load.go:12"}]}],"types"`), 1)
	image := file[56+layout:]
	if uint64(len(text)) == layout {
		t.Fatalf("no place for objects: %s", text)
	}
	sum := func(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
	head := bytes.Clone(file[:56])
	binary.LittleEndian.PutUint64(head[8:], uint64(len(text)))
	binary.LittleEndian.PutUint32(head[40:], sum(text))
	binary.LittleEndian.PutUint32(head[48:], sum(head[:48]))
	return append(append(head, text...), image...)
}

// writeState writes a snapshot of the state that load makes, as its program wrote it.
func writeState[T any](t *testing.T, file string, load func(s scope.Scope, state *save.State, root *T)) {
	b, err := budget.Open(budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level",
		Size: 64 * budget.KiB, State: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var ring *save.Ring
	_, err = budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*T, error) {
		state, root := save.Begin(b.Region("level"), s, scope.Plain[T]())
		load(s, state, root)
		ring = save.NewRing(s, 1, state)
		return root, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ring.Take(1); err != nil {
		t.Fatal(err)
	}
	text, err := ring.AppendFile(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// writeVersions writes old.save, of a program in its first version, and new.save, strict.save and
// none.save of newer ones.
func writeVersions(t *testing.T, dir string) {
	func() {
		type frog struct {
			X    int16
			Mood bool
			_    [1]byte
		}
		type pond struct {
			Tick  uint32
			Frogs [2]frog
		}
		writeState(t, filepath.Join(dir, "old.save"), func(s scope.Scope, state *save.State, p *pond) {
			p.Tick, p.Frogs[1] = 7, frog{X: -3, Mood: true}
			scope.Plain[frog]().Pool(s, 4).Get().X = 1
			scope.Plain[uint64]().Pool(s, 2)
		})
	}()
	type frog struct{ X, Age int32 }
	type pond struct {
		Now   uint64
		Frogs [3]frog
	}
	load := func(s scope.Scope, _ *save.State, _ *pond) {
		scope.Plain[frog]().Pool(s, 6)
		scope.Plain[uint64]().Pool(s, 2)
		scope.Plain[uint32]().Pool(s, 2)
	}
	writeState(t, filepath.Join(dir, "unversioned.save"), load)
	writeState(t, filepath.Join(dir, "strict.save"), func(s scope.Scope, state *save.State, _ *pond) {
		state.Version(1)
		scope.Plain[frog]().Pool(s, 3)
		scope.Plain[uint64]().Pool(s, 2)
	})
	writeState(t, filepath.Join(dir, "new.save"), func(s scope.Scope, state *save.State, p *pond) {
		state.Version(1)
		state.Version(2, save.Renamed("main.pond.Tick", "Now"), save.Dropped("main.frog.Mood"),
			save.Converted(func(_ struct{}, f *frog) { f.Age = 1 }))
		load(s, state, p)
	})
}

// TestSaveCommands compares save, its output and exit codes with testdata/save.txt.
func TestSaveCommands(t *testing.T) {
	dir := t.TempDir()
	writePonds(t, dir, "pond", []string{"a", "b", "c", "d"}, func(i int, p *pond,
		frogs scope.HandlePool[frog], stones []uint16) {
		switch i {
		case 1:
			frogs.At(arena.Handle[frog](1 << 32)).Mood[1] = 7
		case 2:
			frogs.At(arena.Handle[frog](1 << 32)).Mood[1] = 0
			stones[5] = 300
		case 3:
			frogs.Get()
		}
	})
	writePonds(t, dir, "other", []string{"other"}, func(int, *pond, scope.HandlePool[frog],
		[]uint16) {
	})
	writeVersions(t, dir)
	file, err := os.ReadFile(filepath.Join(dir, "a.save"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"map.save": asChecked(t, file),
		"short.save": file[:100]} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var all strings.Builder
	for _, command := range []string{
		"save show DIR/a.save",
		"save show DIR/a.save --json",
		"save diff DIR/a.save DIR/a.save --json",
		"save diff DIR/a.save DIR/c.save --map DIR/map.save --json",
		"save diff DIR/a.save DIR/none.save --json",
		"save show DIR/map.save",
		"save show DIR/short.save",
		"save show DIR/none.save",
		"save diff DIR/a.save DIR/a.save",
		"save diff DIR/a.save DIR/b.save",
		"save diff DIR/a.save DIR/c.save",
		"save diff DIR/a.save DIR/c.save --map DIR/map.save",
		"save diff DIR/a.save DIR/c.save --map DIR/a.save",
		"save diff DIR/a.save DIR/d.save",
		"save diff DIR/a.save DIR/other.save",
		"save diff DIR/a.save DIR/short.save",
		"save diff DIR/short.save DIR/a.save",
		"save diff DIR/a.save DIR/b.save --map DIR/short.save",
		"save diff DIR/a.save",
		"save diff DIR/a.save DIR/b.save --mop DIR/map.save",
		"save dif DIR/a.save DIR/b.save",
		"save convert DIR/old.save --against DIR/new.save",
		"save convert DIR/old.save --against DIR/new.save --json",
		"save convert DIR/old.save --against DIR/strict.save",
		"save convert DIR/old.save --against DIR/strict.save --json",
		"save convert DIR/old.save --against DIR/unversioned.save",
		"save convert DIR/new.save --against DIR/strict.save",
		"save convert DIR/new.save --against DIR/new.save",
		"save convert DIR/a.save --against DIR/other.save",
		"save convert DIR/short.save --against DIR/new.save",
		"save convert DIR/old.save",
		"save",
	} {
		all.WriteString(shown(command, map[string]string{"DIR": dir}))
	}
	compare(t, "testdata/save.txt", all.String())
}

package save_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// written returns the file of a snapshot.
func written(t testing.TB, r *save.Ring, number uint64) []byte {
	var b bytes.Buffer
	require.NoError(t, r.Write(&b, number))
	return b.Bytes()
}

// playFrom plays a tick from a snapshot, and returns the hash of the next.
func playFrom(t testing.TB, p *pond, number uint64) uint64 {
	require.NoError(t, p.ring.Restore(background, number))
	for i := range uint64(100) {
		p.step(i)
	}
	require.NoError(t, p.ring.Take(number+1))
	return hash(t, p.ring, number+1)
}

// TestWriteAndRead: another budget reads a file at another address, and plays on with the same
// result.
func TestWriteAndRead(t *testing.T) {
	p := newPond(t, open(t, pondPlan()), "level", 2)
	for i := range uint64(50) {
		p.step(i)
	}
	require.NoError(t, p.ring.Take(50))
	file := written(t, p.ring, 50)
	want := playFrom(t, p, 50)

	other := newPond(t, open(t, pondPlan()), "level", 2)
	other.step(7)
	rest := bytes.NewReader(append(bytes.Clone(file), "and more"...))
	number, err := other.ring.Read(rest)
	require.NoError(t, err)
	assert.EqualValues(t, 50, number)
	assert.Equal(t, 8, rest.Len(), "nothing beyond it")
	assert.EqualValues(t, 1, other.room.Tick, "it is a snapshot, and in place by Restore")
	assert.Equal(t, hash(t, p.ring, 50), hash(t, other.ring, 50))
	assert.Equal(t, want, playFrom(t, other, 50))
	assert.Equal(t, file, written(t, other.ring, 50))

	f, err := save.ReadFile(bytes.NewReader(file))
	require.NoError(t, err)
	assert.EqualValues(t, 50, f.Number)
	assert.Equal(t, p.ring.Size(), len(f.Image))
	assert.Equal(t, "save_test.room", f.Layout.Parts[0].Root)
}

// TestAppendFile: AppendFile appends the same file to any bytes, in existing memory or in more, and
// nothing on an error.
func TestAppendFile(t *testing.T) {
	p := newPond(t, open(t, pondPlan()), "level", 2)
	dst := []byte("before")
	for i := range uint64(3) {
		p.step(i)
		require.NoError(t, p.ring.Take(i))
		file, err := p.ring.AppendFile(dst, i) // the first call describes the types
		require.NoError(t, err)
		assert.Equal(t, append([]byte("before"), written(t, p.ring, i)...), file)
		for _, room := range []int{6, 7, 6 + 56, len(file) - 1, len(file)} {
			some := append(make([]byte, 0, room), dst...)
			again, err := p.ring.AppendFile(some, i)
			require.NoError(t, err)
			require.Equal(t, file, again, room)
			assert.Equal(t, room == len(file), &again[0] == &some[0], room)
		}
	}
	file, err := p.ring.AppendFile(dst, 0)
	assert.ErrorContains(t, err, "doesn't hold snapshot 0")
	assert.Equal(t, dst, file)

	buffer := make([]byte, 0, len(written(t, p.ring, 2)))
	n := uint64(2)
	allocs := testing.AllocsPerRun(100, func() {
		n++
		p.room.Spawned += n
		if err := p.ring.Take(n); err != nil {
			t.Error(err)
		}
		if buffer, err = p.ring.AppendFile(buffer[:0], n); err != nil {
			t.Error(err)
		}
	})
	if !arena_c.Race && !arena_c.Asan { // these builds inline less, so more escapes
		assert.Zero(t, allocs)
	}
	require.NoError(t, readAgain(p.ring, buffer))
}

// TestAppendFileRefused: a region that is no state region has no file.
func TestAppendFileRefused(t *testing.T) {
	plan := pondPlan()
	for i := range plan.Regions {
		plan.Regions[i].State = false
	}
	p := newPond(t, open(t, plan), "level", 1)
	require.NoError(t, p.ring.Take(1))
	file, err := p.ring.AppendFile(nil, 1)
	assert.ErrorContains(t, err, "AppendFile of region level")
	assert.Nil(t, file)
}

// TestDamagedFiles: each changed byte and each missing end is reported with its place, and nothing
// changes.
func TestDamagedFiles(t *testing.T) {
	p := newPond(t, open(t, pondPlan()), "level", 2)
	for i := range uint64(50) {
		p.step(i)
	}
	require.NoError(t, p.ring.Take(3))
	require.NoError(t, p.ring.Take(4))
	file, before := written(t, p.ring, 4), hash(t, p.ring, 3)
	refused := func(damaged []byte) {
		_, err := p.ring.Read(bytes.NewReader(damaged))
		require.ErrorContains(t, err, "save: a file for region level, byte ")
		_, err = save.ReadFile(bytes.NewReader(damaged))
		require.ErrorContains(t, err, "save: a file, byte ")
		require.True(t, p.ring.Has(3) && p.ring.Has(4))
	}
	for n := 0; n < len(file); n += 1 + n/100 {
		refused(file[:n])
	}
	for i := 0; i < len(file); i += 1 + i/100 {
		damaged := bytes.Clone(file)
		damaged[i] ^= 1 << (i % 8)
		refused(damaged)
	}
	assert.Equal(t, before, hash(t, p.ring, 3))
	for text, damage := range map[string]func([]byte){
		"byte 0: it isn't a snapshot file": func(b []byte) { b[0] = 'U' },
		"byte 6: it has version \"2\", and this program reads " +
			"\"1\"": func(b []byte) { b[6] = '2' },
		"byte 48: the header is damaged: " +
			"": func(b []byte) { b[24]++ },
		"byte 56: the description is damaged: " +
			"": func(b []byte) { b[100]++ },
		fmt.Sprintf("byte %d: the snapshot is damaged: ",
			len(file)-p.ring.Size()): func(b []byte) { b[len(b)-1]++ },
	} {
		damaged := bytes.Clone(file)
		damage(damaged)
		_, err := p.ring.Read(bytes.NewReader(damaged))
		assert.ErrorContains(t, err, text)
	}
	_, err := p.ring.Read(bytes.NewReader(file[:30]))
	assert.EqualError(t, err,
		"save: a file for region level, byte 30: the file ends early: 26 of the 56 bytes of the header are missing")
	_, err = p.ring.Read(bytes.NewReader(file[:len(file)-3]))
	assert.ErrorContains(t, err, "the file ends early: 3 of the ")
	require.NoError(t, readAgain(p.ring, file))
}

func readAgain(r *save.Ring, file []byte) error {
	_, err := r.Read(bytes.NewReader(file))
	return err
}

// resum corrects the header's checksums.
func resum(file []byte) []byte {
	layout := binary.LittleEndian.Uint64(file[8:])
	if layout <= uint64(len(file)-56) {
		binary.LittleEndian.PutUint32(file[40:], save.SumOf(file[56:56+layout]))
		binary.LittleEndian.PutUint32(file[44:], save.SumOf(file[56+layout:]))
	}
	binary.LittleEndian.PutUint64(file[48:], uint64(save.SumOf(file[:48])))
	return file
}

// FuzzRead: a file with correct checksums is refused, or is a snapshot that passes; play that goes
// on from it harms the game alone.
func FuzzRead(f *testing.F) {
	b, err := budget.Open(pondPlan())
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, b.Close()) })
	p := newPond(f, b, "level", 2)
	for i := range uint64(50) {
		p.step(i)
	}
	require.NoError(f, p.ring.Take(1))
	file := written(f, p.ring, 1)
	layout := binary.LittleEndian.Uint64(file[8:])
	for _, at := range []int{0, 8, 12, 16, 20, 24, 32, 60, 100, 300, 56 + int(layout), 60 +
		int(layout), len(file) - 8} {
		f.Add(uint32(at), []byte{0xff}, uint32(0))
		f.Add(uint32(at), []byte("[{}]"), uint32(at/2))
	}
	l := newLinked(f)
	linked := written(f, l.ring, 1)
	binary.LittleEndian.PutUint64(linked[24:], 2)
	image := len(linked) - l.ring.Size()
	for _, at := range []int{l.lamps, l.name, l.first, l.tail, l.up} {
		f.Add(uint32(at), []byte{200}, uint32(0))
		f.Add(uint32(at), []byte{1, 3}, uint32(0))
	}
	f.Fuzz(func(t *testing.T, at uint32, change []byte, short uint32) {
		links := bytes.Clone(linked)
		copy(links[image+int(at)%l.ring.Size():], change)
		resum(links)
		if _, err := l.ring.Read(bytes.NewReader(links)); err == nil {
			l.plays(t, 2)
		}
		damaged := bytes.Clone(file[:len(file)-int(short)%len(file)])
		if len(damaged) < 56 {
			require.Error(t, readAgain(p.ring, damaged))
			return
		}
		copy(damaged[int(at)%len(damaged):], change)
		binary.LittleEndian.PutUint64(damaged[24:], 2) // it doesn't replace 1
		resum(damaged)
		if _, err := save.ReadFile(bytes.NewReader(damaged)); err == nil {
			_, _, err := save.DiffFiles(bytes.NewReader(file), bytes.NewReader(damaged), nil)
			_ = err // it is another program's
		}
		number, err := p.ring.Read(bytes.NewReader(damaged))
		if err != nil {
			return
		}
		image := save.Image(p.ring, number)
		require.NoError(t, save.Hold(p.ring, number, image), "what Read took is what play could have left")
		_, _, err = p.ring.Diff(1, number)
		require.NoError(t, err)
		require.NoError(t, save.Hold(p.ring, number, save.Image(p.ring, number)))
		require.EqualValues(t, 50, p.room.Tick, "the state is as it was")
	})
}

// TestOtherPrograms: a file of another program, plan or data is refused with the first difference.
func TestOtherPrograms(t *testing.T) {
	file := func(plan budget.Plan, load func(r budget.Region, s scope.Scope) *save.State) []byte {
		var ring *save.Ring
		b := open(t, plan)
		r := b.Region(plan.Regions[0].Name)
		_, err := budget.Load(background, r, func(s scope.Scope) (*room, error) {
			ring = save.NewRing(s, 1, load(r, s))
			return nil, nil
		})
		require.NoError(t, err)
		require.NoError(t, ring.Take(1))
		defer func() { require.NoError(t, b.Close()) }()
		return written(t, ring, 1)
	}
	named := func(name string) budget.Plan {
		plan := twoRegions()
		plan.Regions[0].Name = name
		return plan
	}
	b := open(t, twoRegions())
	var ring *save.Ring
	load(t, b, "level", func(r budget.Region, s scope.Scope) {
		state, _ := save.Begin(r, s, roomMaker)
		frogMaker.HandlePool(s, 40)
		flyMaker.Pool(s, 5)
		ring = save.NewRing(s, 1, state)
	})
	for want, load := range map[string]func(r budget.Region, s scope.Scope) *save.State{
		"the root of region level: save_test.room here, and save_test.hall in the " +
			"file": func(r budget.Region, s scope.Scope) *save.State {
			state, _ := save.Begin(r, s, hallMaker)
			return state
		},
		"pools of region level: 2 here, and 1 in the file": func(r budget.Region,
			s scope.Scope) *save.State {
			state, _ := save.Begin(r, s, roomMaker)
			frogMaker.HandlePool(s, 40)
			return state
		},
		"the pool of save_test.frog has 40 chunks here, and 64 in the file": func(r budget.Region,
			s scope.Scope) *save.State {
			state, _ := save.Begin(r, s, roomMaker)
			frogMaker.HandlePool(s, 64)
			flyMaker.Pool(s, 5)
			return state
		},
		"bytes before the state of region level: 0 here, and 128 in the file": func(r budget.Region,
			s scope.Scope) *save.State {
			byteMaker.Slice(s, 100)
			state, _ := save.Begin(r, s, roomMaker)
			frogMaker.HandlePool(s, 40)
			flyMaker.Pool(s, 5)
			return state
		},
		"bytes of the state of region level: ": func(r budget.Region, s scope.Scope) *save.State {
			state, _ := save.Begin(r, s, roomMaker)
			frogMaker.HandlePool(s, 40)
			flyMaker.Pool(s, 5)
			byteMaker.Slice(s, 100)
			return state
		},
	} {
		_, err := ring.Read(bytes.NewReader(file(twoRegions(), load)))
		assert.ErrorContains(t, err,
			"save: a file for region level, byte 56: it is of another program, plan or data: "+want)
	}
	same := func(r budget.Region, s scope.Scope) *save.State {
		state, _ := save.Begin(r, s, roomMaker)
		return state
	}
	_, err := ring.Read(bytes.NewReader(file(named("room"), same)))
	assert.ErrorContains(t, err, "the region: level here, and room in the file")
	plan := twoRegions()
	plan.Name = "three"
	_, err = ring.Read(bytes.NewReader(file(plan, same)))
	assert.ErrorContains(t, err, `the plan: "two" here, and "three" in the file`)

	// A type with another field type, under the same name.
	text := bytes.Replace(file(twoRegions(), func(r budget.Region, s scope.Scope) *save.State {
		state, _ := save.Begin(r, s, roomMaker)
		frogMaker.HandlePool(s, 40)
		flyMaker.Pool(s, 5)
		return state
	}), []byte(`{"name":"Tick","offset":0,"type":"uint64"}`),
		[]byte(`{"name":"Tick","offset":0,"type":"uint32"}`), 1)
	binary.LittleEndian.PutUint64(text[32:], 1)
	_, err = ring.Read(bytes.NewReader(resum(text)))
	assert.ErrorContains(t, err, "type save_test.room, field Tick: uint64, in the file uint32")
}

const fileChild = "UPFRONT_SAVE_FILE"

// TestOtherProcesses: a file goes on in another process, at another address, and in another build.
func TestOtherProcesses(t *testing.T) {
	if dir := os.Getenv(fileChild); dir != "" {
		child(t, dir)
		return
	}
	dir := t.TempDir()
	programs := []string{os.Args[0]}
	if step.Now() == step.Soak { // compilation takes long
		checked := filepath.Join(dir, "checked.test")
		out, err := exec.Command("go", "test", "-c", "-tags", "checked", "-o", checked,
			".").CombinedOutput()
		require.NoError(t, err, "%s", out)
		plain := filepath.Join(dir, "plain.test")
		out, err = exec.Command("go", "test", "-c", "-o", plain, ".").CombinedOutput()
		require.NoError(t, err, "%s", out)
		programs = append(programs, checked, plain)
	}
	for i := range 2 * len(programs) {
		cmd := exec.Command(programs[i%len(programs)], "-test.run=^TestOtherProcesses$")
		cmd.Env = append(os.Environ(), fileChild+"="+dir, fmt.Sprintf("%s_BASE=%d", fileChild,
			uint64(i+1)<<36))
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.ENOEXEC) {
			t.Skip("the emulator starts no programs; on a machine of this target, go test ./budget/save runs it:", err)
		}
		require.NoError(t, err, "%s", out)
	}
	p := newPond(t, open(t, pondPlan()), "level", 2)
	for i := range 2 * len(programs) {
		for k := range uint64(20) {
			p.step(uint64(i)*100 + k)
		}
	}
	require.NoError(t, p.ring.Take(1))
	file, err := os.ReadFile(filepath.Join(dir, "pond"))
	require.NoError(t, err)
	require.NoError(t, readAgain(p.ring, file))
	assert.Equal(t, hash(t, p.ring, 1), hash(t, p.ring, uint64(2*len(programs))))
	d, differ, err := p.ring.Diff(1, uint64(2*len(programs)))
	require.NoError(t, err)
	assert.False(t, differ, "%v", d)
}

// child reads the files that exist, plays on, and writes the result.
func child(t *testing.T, dir string) {
	plan := pondPlan()
	_, err := fmt.Sscan(os.Getenv(fileChild+"_BASE"), &plan.Base)
	require.NoError(t, err)
	p := newPond(t, open(t, plan), "level", 2)
	name, number := filepath.Join(dir, "pond"), uint64(0)
	if file, err := os.Open(name); err == nil {
		number, err = p.ring.Read(file)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		require.NoError(t, p.ring.Restore(background, number))
	}
	for k := range uint64(20) {
		p.step(number*100 + k)
	}
	require.NoError(t, p.ring.Take(number+1))
	file, err := os.Create(name)
	require.NoError(t, err)
	require.NoError(t, p.ring.Write(file, number+1))
	require.NoError(t, file.Close())
}

type odd [3]uint32

var oddMaker = scope.Plain[odd]()

// TestSameInEveryBuild: the same inputs make the same snapshot and description in each build on
// each machine; all must match these numbers.
func TestSameInEveryBuild(t *testing.T) {
	p := newPond(t, open(t, pondPlan()), "level", 2)
	for i := range uint64(200) {
		p.step(i)
	}
	require.NoError(t, p.ring.Take(1))
	f, err := save.ReadFile(bytes.NewReader(written(t, p.ring, 1)))
	require.NoError(t, err)
	assert.Equal(t, uint64(0x2acb9ddaf88be99e), hash(t, p.ring, 1))
	assert.Equal(t, uint64(0xdc21babe0881324f), f.Fingerprint)

	// The rest of the plan doesn't matter either: it moves the tables, and the pools' headers in
	// them.
	wide := pondPlan()
	wide.Regions = append([]budget.RegionPlan{{Name: "below", Size: budget.MiB}}, wide.Regions...)
	wide.Scratch = budget.ScratchPlan{Workers: 3, Size: 4 * budget.KiB}
	q := newPond(t, open(t, wide), "level", 2)
	_, err = q.ring.Read(bytes.NewReader(written(t, p.ring, 1)))
	require.NoError(t, err)
	require.NoError(t, q.ring.Restore(background, 1))
	assert.Equal(t, p.room.Tick, q.room.Tick)
	require.NoError(t, q.ring.Take(2))
	assert.Equal(t, hash(t, p.ring, 1), hash(t, q.ring, 2))
	require.NoError(t, q.region.Rewind(background))

	b := newBuilding(t)
	b.hall.Tick, b.lamps[3].Left = 9, -1
	require.NoError(t, b.ring.Take(1))
	f, err = save.ReadFile(bytes.NewReader(written(t, b.ring, 1)))
	require.NoError(t, err)
	assert.Equal(t, uint64(0x0db3e6124243ebd7), hash(t, b.ring, 1))
	assert.Equal(t, uint64(0x1ea57615bb0bcfeb), f.Fingerprint)

	// Chunks of 16 bytes for values of 12.
	var ring *save.Ring
	load(t, open(t, twoRegions()), "level", func(r budget.Region, s scope.Scope) {
		state, _ := save.Begin(r, s, roomMaker)
		pool, handles := oddMaker.Pool(s, 3), oddMaker.HandlePool(s, 3)
		*pool.GetUnzeroed() = odd{1, 2, 3}
		*pool.Get() = odd{4, 5, 6}
		x, _ := handles.Get()
		*x = odd{7, 8, 9}
		ring = save.NewRing(s, 1, state)
	})
	require.NoError(t, ring.Take(1))
	assert.Equal(t, uint64(0x94d07d983ad983d2), hash(t, ring, 1))
}

// TestHostileDescriptions: a description that no ring has written is refused with its fault, also
// with correct checksums.
func TestHostileDescriptions(t *testing.T) {
	b := newBuilding(t)
	file := written(t, b.ring, 1)
	end := 56 + binary.LittleEndian.Uint64(file[8:])
	for _, of := range []struct{ from, to, want string }{
		{`save_test.node","kind":"struct","size":16`, `save_test.node","kind":"struct","size":9`,
			"field \"Value\" at byte 8 of 9"},
		{`"name":"Way","offset":0`, `"name":"Way","offset":8`, "field \"Mode\" at byte 24 of 48"},
		{`"name":"Way","offset":0`, `"name":"Way","offset":18446744073709551615`,
			"at byte 18446744073709551615 of 48"},
		{`"name":"Way"`, `"name":"Wa\u001b[2Jy"`, `field "Wa\x1b[2Jy", which can't be printed`},
		{`"of":"save_test.place","count":3`, `"of":"save_test.place","count":4`,
			"24 bytes for 4 elements of 8"},
		{`"of":"save_test.place","count":3`, `"of":"save_test.palace","count":3`,
			`of the type "save_test.palace", which is missing`},
		{`"of":"save_test.place","count":3`, `"of":"save_test.actor","count":0`,
			"24 bytes for 0 elements of 48"},
		{`"name":"X","offset":0,"type":"float32"`, `"name":"X","offset":0,"type":"save_test.place"`,
			"field \"Y\" at byte 4 of 8"},
		{`{"name":"X","offset":0,"type":"float32"},{"name":"Y","offset":4,"type":"float32"}`,
			`{"name":"X","offset":0,"type":"save_test.place"}`, `type "save_test.place" contains itself`},
		{`"kind":"handle"`, `"kind":"fiddle"`, `the kind "fiddle"`},
		{`"kind":"inline"`, `"kind":"ptr"`, "of the type \"\", which is missing"},
		{`"root":"save_test.hall"`, `"root":"save_test.wall"`, `a root "save_test.wall" in a state of`},
		{`"size":552`, `"size":55`, `a root "save_test.hall" in a state of 55 bytes`},
		{`"size":552`, `"size":1099511627776`, `in a state of 1099511627776 bytes`},
		{`"size":552`, `"size":560000`, `by the description`},
		{`"count":5,"stride":48`, `"count":50,"stride":48`, `a pool of 50 chunks of 48 bytes`},
		{`"count":5,"stride":48`, `"count":9,"stride":48`, `a pool of "save_test.actor" at byte`},
		{`"count":5,"stride":48`, `"count":5,"stride":40`, `a pool of 5 chunks of 40 bytes`},
		{`"region":"level"`, `"region":"level\n"`, "its name can't be printed"},
		{`"parts":[`, `"parts":[],"other":[`, "no region"},
		{`"types":[`, `"types":[{"name":"uint8","kind":"uint8","size":1},`, "two types have the same name"},
		{`{"plan"`, `{"plan":7,"plan"`, "cannot unmarshal"},
	} {
		text := bytes.Replace(file[56:end], []byte(of.from), []byte(of.to), 1)
		require.NotEqual(t, string(file[56:end]), string(text), of.from)
		damaged := append(append(bytes.Clone(file[:56]), text...), file[end:]...)
		binary.LittleEndian.PutUint64(damaged[8:], uint64(len(text)))
		_, err := save.ReadFile(bytes.NewReader(resum(damaged)))
		require.Error(t, err, of.to)
		assert.Contains(t, err.Error(), "save: a file, byte ", of.to)
		assert.Contains(t, err.Error(), of.want, of.to)
	}
	for at, want := range map[int]string{8: "a description of ", 16: "a snapshot of "} {
		damaged := bytes.Clone(file)
		binary.LittleEndian.PutUint64(damaged[at:], 1<<60)
		_, err := save.ReadFile(bytes.NewReader(resum(damaged)))
		assert.ErrorContains(t, err, fmt.Sprintf("byte %d: %s%d bytes", at, want, uint64(1)<<60))
	}
}

// TestSlotsFit: a file of one slot fits each slot that was loaded the same way, and a difference
// names its slot.
func TestSlotsFit(t *testing.T) {
	b := open(t, budget.Plan{Name: "matches", Regions: []budget.RegionPlan{
		{Name: "match", Size: 64 * budget.KiB, Slots: 2, State: true}}})
	var rooms [2]*room
	var rings [2]*save.Ring
	for i := range rooms {
		slot, err := b.Slots("match").Acquire()
		require.NoError(t, err)
		defer func() { require.NoError(t, slot.Release(background)) }()
		_, err = budget.Load(background, slot, func(s scope.Scope) (*room, error) {
			var state *save.State
			state, rooms[i] = save.Begin(slot, s, roomMaker)
			rings[i] = save.NewRing(s, 2, state)
			return nil, nil
		})
		require.NoError(t, err)
	}
	rooms[0].Tick = 7
	require.NoError(t, rings[0].Take(1))
	var file bytes.Buffer
	require.NoError(t, rings[0].Write(&file, 1))
	number, err := rings[1].Read(&file)
	require.NoError(t, err)
	require.NoError(t, rings[1].Take(2))
	d, differ, err := rings[1].Diff(number, 2)
	require.NoError(t, err)
	assert.True(t, differ)
	assert.Equal(t, "match 1", d.Region)
	require.NoError(t, rings[1].Restore(background, number))
	assert.EqualValues(t, 7, rooms[1].Tick)
}

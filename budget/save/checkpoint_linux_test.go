package save_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/step"
)

var checkpointPlan = save.CheckpointPlan{Slots: 3, Size: 64 << 10, Own: 40}

func checkpoints(t testing.TB, name string, plan save.CheckpointPlan) *save.Checkpoints {
	t.Helper()
	c, err := save.OpenCheckpoints(name, plan)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

func attach(t testing.TB, c *save.Checkpoints, slot int, r *save.Ring) *save.Checkpoint {
	t.Helper()
	p, err := c.Attach(slot, r)
	require.NoError(t, err)
	return p
}

// keptPond is a pond with a checkpoint in slot 2 of a new file.
type keptPond struct {
	*pond
	name string
	file *save.Checkpoints
	mine *save.Checkpoint
}

func newKeptPond(t testing.TB, places int) keptPond {
	name := filepath.Join(t.TempDir(), "pond")
	c, p := checkpoints(t, name, checkpointPlan), newPond(t, open(t, pondPlan()), "level", places)
	return keptPond{p, name, c, attach(t, c, 2, p.ring)}
}

// put makes a snapshot the checkpoint.
func (p keptPond) put(t testing.TB, number uint64, own ...byte) {
	t.Helper()
	require.NoError(t, p.ring.Take(number))
	require.NoError(t, p.mine.Write(number, own))
}

func slotsOf(c *save.Checkpoints) (list []int) {
	for slot := range c.All() {
		list = append(list, slot)
	}
	return list
}

// TestCheckpoint: another process finds the last checkpoint of each slot, and play goes on as
// without an end.
func TestCheckpoint(t *testing.T) {
	p := newKeptPond(t, 2)
	name, c, mine := p.name, p.file, p.mine
	assert.Empty(t, slotsOf(c))
	_, _, err := mine.Restore(background)
	assert.EqualError(t, err, "save: Restore of checkpoint 2 of "+name+": it is empty")
	assert.False(t, errors.Is(err, save.ErrRefused))
	for n := range uint64(7) {
		p.step(n)
		p.put(t, n, fmt.Appendf(nil, "lobby %d", n)...)
		require.Equal(t, save.Image(p.ring, n), save.CheckpointImage(mine))
	}
	want := hash(t, p.ring, 6)
	require.NoError(t, c.Close())
	assert.ErrorContains(t, mine.Write(6, nil), "Write of checkpoint 2 of "+name+": they are closed")
	assert.ErrorContains(t, mine.Clear(), "they are closed")
	assert.ErrorContains(t, c.Sync(), "they are closed")
	assert.Empty(t, slotsOf(c))

	c = checkpoints(t, name, checkpointPlan)
	assert.Equal(t, []int{2}, slotsOf(c))
	q := newPond(t, open(t, pondPlan()), "level", 2)
	mine = attach(t, c, 2, q.ring)
	number, own, err := mine.Restore(background)
	require.NoError(t, err)
	assert.Equal(t, uint64(6), number)
	assert.Equal(t, "lobby 6", string(own))
	assert.Equal(t, want, hash(t, q.ring, number))
	assert.Equal(t, playFrom(t, p.pond, number), playFrom(t, q, number))

	// A new image is written over the older one: number 5.
	require.NoError(t, mine.Write(7, nil))
	number, own, err = mine.Restore(background)
	require.NoError(t, err)
	assert.Equal(t, uint64(7), number)
	assert.Empty(t, own)
	require.NoError(t, mine.Clear())
	assert.Empty(t, slotsOf(c))
}

// TestCheckpointErrors: each error names the number to set, and the last checkpoint stays.
func TestCheckpointErrors(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pond")
	for _, plan := range []save.CheckpointPlan{{}, {Slots: 1}, {Slots: -1, Size: 1}, {Slots: 1, Size: 1 << 41},
		{Slots: 1, Size: 1, Own: 1 << 41}, {Slots: 1 << 40, Size: 1 << 30}} {
		_, err := save.OpenCheckpoints(name, plan)
		assert.ErrorContains(t, err, "save: BUG: a CheckpointPlan of ")
	}
	assert.NoFileExists(t, name)
	c := checkpoints(t, name, checkpointPlan)
	p := newPond(t, open(t, pondPlan()), "level", 2)
	for slot, why := range map[int]string{-1: "slots count from 0",
		3: "it has CheckpointPlan{Slots:3 Size:65536 Own:40}: raise Slots to 4 or more"} {
		_, err := c.Attach(slot, p.ring)
		assert.ErrorContains(t, err, fmt.Sprintf("save: Attach to checkpoint %d of %s: %s", slot, name, why))
		_, err = c.Own(slot)
		assert.ErrorContains(t, err, fmt.Sprintf("save: Own of checkpoint %d of %s: %s", slot, name, why))
	}
	first := attach(t, c, 0, p.ring)
	require.NoError(t, p.ring.Take(1))
	require.NoError(t, first.Write(1, []byte("lobby")))
	assert.ErrorContains(t, first.Write(0, nil), "the ring of 2 doesn't hold snapshot 0")
	assert.ErrorContains(t, first.Write(1, make([]byte, 41)),
		"Write of checkpoint 0 of "+name+": 41 bytes of the program's own, and the file has CheckpointPlan{Slots:3 "+
			"Size:65536 Own:40}: raise Own to 41 or more")
	second := attach(t, c, 1, p.ring)
	assert.ErrorContains(t, first.Write(1, nil), "its ring was attached again")
	require.NoError(t, second.Write(1, nil))
	number, _, err := second.Restore(background)
	require.NoError(t, err)
	assert.Equal(t, uint64(1), number)
	require.NoError(t, p.region.Rewind(background))
	assert.ErrorContains(t, second.Write(1, nil), "Write of checkpoint 1 of ")
	_, err = c.Attach(0, p.ring)
	assert.ErrorContains(t, err, "Attach to checkpoint 0 of ")
	assert.Equal(t, []int{0, 1}, slotsOf(c))
	for slot, err := range c.All() {
		assert.Zero(t, slot)
		assert.NoError(t, err)
		break
	}

	small := checkpointPlan
	small.Size = 4 << 10
	q := newPond(t, open(t, pondPlan()), "level", 2)
	d := checkpoints(t, name+"2", small)
	_, err = d.Attach(0, q.ring)
	var need uint64
	_, text, _ := bytes.Cut([]byte(err.Error()), []byte("raise Size to "))
	_, scan := fmt.Sscanf(string(text), "%d or more", &need)
	require.NoError(t, scan, err)
	for _, size := range []uint64{need - 64, need} {
		small.Size = size
		_, err = checkpoints(t, fmt.Sprint(name, size), small).Attach(0, q.ring)
		assert.Equal(t, size == need, err == nil, "%v", err)
	}
	plain := pondPlan()
	plain.Regions[0].State = false
	r := newPond(t, open(t, plain), "level", 2)
	_, err = c.Attach(2, r.ring)
	assert.ErrorContains(t, err, "set its key state to true")
}

// TestCheckpointFiles: a file that isn't this plan's is refused by name, and unchanged.
func TestCheckpointFiles(t *testing.T) {
	p := newKeptPond(t, 2)
	p.put(t, 1)
	name := p.name
	_, err := save.OpenCheckpoints(name, checkpointPlan)
	assert.ErrorIs(t, err, syscall.EWOULDBLOCK)
	assert.ErrorContains(t, err, fmt.Sprintf("process %d has it", os.Getpid()))
	require.NoError(t, p.file.Close())
	good, err := os.ReadFile(name)
	require.NoError(t, err)

	for text, change := range map[string]func(file []byte) []byte{
		"its first 96 bytes are zeros":       func(b []byte) []byte { return make([]byte, len(b)) },
		"its first 5 bytes are zeros":        func(b []byte) []byte { return make([]byte, 5) },
		"it isn't a file of checkpoints":     func(b []byte) []byte { b[0]++; return b },
		`it has version "2", and this progr`: func(b []byte) []byte { b[7]++; return b },
		"a machine of another byte order":    func(b []byte) []byte { slices.Reverse(b[8:16]); return b },
		"it is cut: it has 50 bytes, and it": func(b []byte) []byte { return b[:50] },
		fmt.Sprintf("it is cut: it has %d bytes of %d, for", len(good)-1, len(good)): func(b []byte) []byte {
			return b[:len(b)-1]
		},
		"421888 bytes of 561152, for CheckpointPlan{Slots:4 S": func(b []byte) []byte { b[16]++; return b },
		"it was made with CheckpointPlan{Slots:-":              func(b []byte) []byte { b[23] = 0x80; return b },
		"was made with CheckpointPlan{Slots:3 Size:0 Own:40}":  func(b []byte) []byte { clear(b[24:32]); return b },
		"with CheckpointPlan{Slots:3 Size:65536 Own:14073748":  func(b []byte) []byte { b[37] = 0x80; return b },
	} {
		changed := change(bytes.Clone(good))
		require.NoError(t, os.WriteFile(name, changed, 0o600))
		_, err := save.OpenCheckpoints(name, checkpointPlan)
		assert.ErrorIs(t, err, save.ErrRefused)
		assert.ErrorContains(t, err, "save: checkpoints "+name)
		assert.ErrorContains(t, err, text)
		now, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(changed, now), text)
	}
	require.NoError(t, os.WriteFile(name, good, 0o600))
	assert.Equal(t, []int{2}, slotsOf(checkpoints(t, name, checkpointPlan)))

	full := platform.InjectFault("allocate", 1)
	_, err = save.OpenCheckpoints(name+"2", checkpointPlan)
	assert.True(t, full())
	assert.ErrorContains(t, err, "Plan{Slots:3 Size:65536 Own:40}: platform: a shared file of 421888 bytes: ")
	assert.False(t, errors.Is(err, save.ErrRefused))
	assert.Equal(t, len(good), 421888)
}

// TestCheckpointInTheMaking: a process that is killed while it makes a file leaves a new one.
func TestCheckpointInTheMaking(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pond")
	require.NoError(t, checkpoints(t, name, checkpointPlan).Close())
	file, err := os.ReadFile(name)
	require.NoError(t, err)
	clear(file[40:save.CheckpointHead])
	for _, size := range []int{0, save.CheckpointHead, 5000, len(file)} {
		require.NoError(t, os.WriteFile(name, file[:size], 0o600))
		c := checkpoints(t, name, checkpointPlan)
		require.NoError(t, c.Close())
		info, err := os.Stat(name)
		require.NoError(t, err)
		assert.Equal(t, int64(len(file)), info.Size())
	}
}

// TestCheckpointAfterARestart: of a machine that stopped, only images that Sync completed count. A
// copy of a file stands for such a machine, since it has another identity.
func TestCheckpointAfterARestart(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pond")
	c := checkpoints(t, name, checkpointPlan)
	p := newPond(t, open(t, pondPlan()), "level", 3)
	for n := range uint64(3) {
		p.step(n)
		require.NoError(t, p.ring.Take(n))
	}
	put := func(slot int, numbers ...uint64) {
		mine := attach(t, c, slot, p.ring)
		_, _, _ = mine.Restore(background) // or else the first Write drops the checkpoint before
		for _, n := range numbers {
			require.NoError(t, mine.Write(n, []byte{byte(n)}))
		}
	}
	put(0, 0)
	put(1, 0, 1)
	require.NoError(t, c.Sync())
	put(1, 2) // 1 is complete
	put(2, 1)
	number, _, err := attach(t, c, 1, p.ring).Restore(background)
	require.NoError(t, err)
	assert.Equal(t, uint64(2), number)
	file, err := os.ReadFile(name)
	require.NoError(t, err)
	at := func(slot, half int) int { return save.CheckpointPage + (2*slot+half)*(len(file)-save.CheckpointPage)/6 }

	restart := func(change func(file []byte)) *save.Checkpoints {
		after := bytes.Clone(file)
		change(after)
		other := filepath.Join(t.TempDir(), "pond")
		require.NoError(t, os.WriteFile(other, after, 0o600))
		return checkpoints(t, other, checkpointPlan)
	}
	c = restart(func([]byte) {})
	assert.Equal(t, []int{0, 1, 2}, slotsOf(c))
	for slot, want := range []uint64{0, 1} {
		number, own, err := attach(t, c, slot, p.ring).Restore(background)
		require.NoError(t, err)
		assert.Equal(t, want, number)
		assert.Equal(t, []byte{byte(want)}, own)
	}
	lost := attach(t, c, 2, p.ring)
	_, _, err = lost.Restore(background)
	assert.ErrorIs(t, err, save.ErrRefused)
	assert.ErrorContains(t, err, "the machine has restarted or the file was copied, and no Sync completed it")
	for slot, reason := range c.All() {
		assert.Equal(t, slot == 2, reason == err)
	}
	require.NoError(t, lost.Clear())
	assert.Equal(t, []int{0, 1}, slotsOf(c))
	_, _, err = lost.Restore(background)
	assert.ErrorContains(t, err, "it is empty")

	// Each changed byte of a complete image is found: 1 is in the second half of slot 1.
	own := at(1, 1) + save.CheckpointEntry
	text := own + 64
	for _, change := range []int{at(1, 1) + 8, at(1, 1) + 40, at(1, 1) + 56, own, text, text + 999, text + 4000} {
		mine := attach(t, restart(func(b []byte) { b[change] ^= 1 }), 1, p.ring)
		_, _, err := mine.Restore(background)
		assert.ErrorIs(t, err, save.ErrRefused, "byte %d", change-own)
	}
}

// TestCheckpointOfTrackedPages: images of a tracked state have the bytes of the snapshots, after
// any restores, deltas and older snapshots, though only changed pages are copied.
func TestCheckpointOfTrackedPages(t *testing.T) {
	for _, fault := range []bool{false, true} {
		const size, places = 300_000, 5
		if fault {
			restore := platform.InjectFault("track", 1)
			defer restore()
		}
		b := open(t, trackedPlan(budget.MiB))
		all, ring := trackedState(t, b, size, places)
		c := checkpoints(t, filepath.Join(t.TempDir(), "pond"), save.CheckpointPlan{Slots: 2, Size: 400_000})
		p := attach(t, c, 0, ring)
		r := rand.New(rand.NewPCG(7, 8))
		var held []uint64
		for number := uint64(1); number < step.Pick[uint64](150, 1500, 1500); number++ {
			for range r.IntN(9) {
				from := r.IntN(size)
				for i := range all[from:min(size, from+1+r.IntN(9000))] {
					all[from+i] = byte(r.Uint32())
				}
			}
			held = slices.DeleteFunc(append(held, number-1), func(n uint64) bool { return !ring.Has(n) })
			if r.IntN(4) == 0 && len(held) > 0 {
				require.NoError(t, ring.Restore(background, held[r.IntN(len(held))]))
			}
			if r.IntN(5) != 0 {
				require.NoError(t, ring.Take(number))
				if r.IntN(5) == 0 { // from outside, in place of another
					require.NoError(t, readAgain(ring, written(t, ring, number)))
				}
				held = append(held, number)
			}
			if r.IntN(50) == 0 {
				p = attach(t, c, r.IntN(2), ring)
			}
			held = slices.DeleteFunc(held, func(n uint64) bool { return !ring.Has(n) })
			for range r.IntN(3) {
				if len(held) == 0 {
					break
				}
				n := held[len(held)-1]
				if r.IntN(4) == 0 {
					n = held[r.IntN(len(held))]
				}
				require.NoError(t, p.Write(n, nil))
				require.True(t, bytes.Equal(save.Image(ring, n), save.CheckpointImage(p)), "%d of %d", n, number)
			}
		}
	}
}

// TestCheckpointAfterARollback: after a Restore to a lower number, Write makes the snapshots of
// higher numbers again, whether or not the ring has those of the wrong guess. It keeps a snapshot
// from outside, and one that play came back to.
func TestCheckpointAfterARollback(t *testing.T) {
	all, ring := trackedState(t, open(t, trackedPlan(budget.MiB)), 300_000, 8)
	c := checkpoints(t, filepath.Join(t.TempDir(), "pond"), save.CheckpointPlan{Slots: 1, Size: 400_000})
	p := attach(t, c, 0, ring)
	put := func(n uint64, state byte) {
		t.Helper()
		require.NoError(t, p.Write(n, nil))
		assert.True(t, bytes.Equal(save.Image(ring, n), save.CheckpointImage(p)), n)
		now := all[150_000]
		require.NoError(t, ring.Restore(background, n))
		assert.Equal(t, state, all[150_000], "the checkpoint of %d", n)
		all[150_000] = now
	}
	for n := range byte(7) { // 6 is the highest
		all[150_000] = n
		require.NoError(t, p.Write(uint64(n), nil))
	}
	file, err := ring.AppendFile(nil, 6)
	require.NoError(t, err)
	require.NoError(t, ring.Restore(background, 3))
	for n := range byte(3) {
		all[150_000] = 100 + n
		put(uint64(4+n), 100+n)
	}
	all[150_000] = 0
	put(5, 101) // of play, and not the highest
	require.NoError(t, ring.Restore(background, 3))
	require.NoError(t, ring.Restore(background, 6)) // back to the guess
	all[150_000] = 0
	put(6, 102)
	_, err = ring.Read(bytes.NewReader(file))
	require.NoError(t, err)
	require.NoError(t, ring.Restore(background, 3))
	all[150_000] = 0
	put(6, 6)
}

// TestCheckpointAfterARestore: a checkpoint right after a restore has the restored pages, wherever
// the tracker's rounds are.
func TestCheckpointAfterARestore(t *testing.T) {
	for idle := range 9 {
		all, ring := trackedState(t, open(t, trackedPlan(budget.MiB)), 300_000, 3)
		c := checkpoints(t, filepath.Join(t.TempDir(), "pond"), save.CheckpointPlan{Slots: 1, Size: 400_000})
		p := attach(t, c, 0, ring)
		put := func(n uint64) {
			for range 2 {
				require.NoError(t, p.Write(n, nil))
				require.True(t, bytes.Equal(save.Image(ring, n), save.CheckpointImage(p)), "%d after %d", n, idle)
			}
		}
		for n := range uint64(2) {
			all[150_000]++
			require.NoError(t, ring.Take(n))
			put(n)
		}
		for range idle {
			require.NoError(t, ring.Take(2))
			put(2)
		}
		require.NoError(t, ring.Restore(background, 0))
		put(0)
	}
}

// TestCheckpointOfChunksThatAreCleared: an image has zeros in free chunks, and their bytes after a
// restore.
func TestCheckpointOfChunksThatAreCleared(t *testing.T) {
	list := played(t, packedHeap{100, 4 << 10, 4 << 10}, packedHeap{0, 8 << 10, 8 << 10})
	ring := list[0].ring
	c := checkpoints(t, filepath.Join(t.TempDir(), "pond"), checkpointPlan)
	p := attach(t, c, 0, ring)
	for range 5 {
		require.NoError(t, p.Write(1, nil))
		require.Equal(t, save.Image(ring, 1), save.CheckpointImage(p))
	}
	number, _, err := p.Restore(background)
	require.NoError(t, err)
	assert.Equal(t, uint64(1), number)
}

// TestCheckpointGarbage: a tick with a checkpoint makes no Go allocation.
func TestCheckpointGarbage(t *testing.T) {
	p, own, n := newKeptPond(t, 2), []byte("lobby"), uint64(0)
	tick := func() {
		n++
		if p.ring.Take(n) != nil || p.mine.Write(n, own) != nil {
			t.Error("a tick failed")
		}
	}
	tick()
	if !arena_c.Asan { // it allocates for checks
		assert.Zero(t, testing.AllocsPerRun(100, tick))
		assert.Zero(t, testing.AllocsPerRun(100, func() { _ = p.mine.Clear() }))
	}
}

// TestCheckpointIsCut: a file that is cut during play is an error of Write and of each other call.
func TestCheckpointIsCut(t *testing.T) {
	p := newKeptPond(t, 2)
	name, c, mine := p.name, p.file, p.mine
	p.put(t, 1)
	require.NoError(t, os.Truncate(name, 8192))
	for range 2 {
		err := mine.Write(1, nil)
		assert.ErrorIs(t, err, syscall.EIO)
		assert.ErrorContains(t, err, "save: Write of checkpoint 2 of "+name+": platform: a mapped file has no page at ")
	}
	assert.ErrorIs(t, mine.Clear(), syscall.EIO)
	assert.ErrorIs(t, c.Sync(), syscall.EIO)
	_, _, err := mine.Restore(background)
	assert.ErrorContains(t, err, "it is empty")
	require.NoError(t, c.Close())
	_, err = save.OpenCheckpoints(name, checkpointPlan)
	assert.ErrorIs(t, err, save.ErrRefused)
	assert.ErrorContains(t, err, "it is cut: it has 8192 bytes of 421888")
}

// TestForgedCheckpoints: with any changed byte of an image, and any entry, Restore refuses the
// image, or play goes on from it, in its own memory.
func TestForgedCheckpoints(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pond")
	c := checkpoints(t, name, checkpointPlan)
	h := newHostile(t)
	mine := attach(t, c, 0, h.ring)
	require.NoError(t, mine.Write(1, []byte("lobby")))
	require.NoError(t, c.Close())
	good, err := os.ReadFile(name)
	require.NoError(t, err)
	image := (len(good) - save.CheckpointPage) / 6
	r := rand.New(rand.NewPCG(1, 5))
	held, refused, before := 0, 0, 0
	try := func(change func(image []byte)) {
		forged := bytes.Clone(good)
		change(forged[save.CheckpointPage:])
		f, err := os.OpenFile(name, os.O_WRONLY, 0) // the same file: nothing was restarted
		require.NoError(t, err)
		_, err = f.Write(forged)
		require.NoError(t, errors.Join(err, f.Close()))
		c := checkpoints(t, name, checkpointPlan)
		defer c.Close()
		mine := attach(t, c, 0, h.ring)
		number, own, err := mine.Restore(background)
		switch {
		case errors.Is(err, save.ErrRefused):
			refused++
		case errors.Is(err, errHostile): // of a function of Rebuild
			held++
		case err != nil:
			require.ErrorContains(t, err, "it is empty")
			before++
		default:
			held++
			require.LessOrEqual(t, len(own), 40)
			h.tryImage(t, save.Image(h.ring, number))
		}
	}
	for word := range 8 {
		for _, value := range []uint64{0, 1, 41, 64, 1 << 16, 1<<16 + 1, 1 << 31, 1 << 32, 1<<63 - 1, 1 << 63,
			1<<64 - 1, 1<<64 - 63} {
			try(func(b []byte) { binary.LittleEndian.PutUint64(b[8*word:], value) })
		}
	}
	for range step.Pick(300, 3000, 30_000) {
		try(func(b []byte) {
			for range 1 + r.IntN(3) {
				b[r.IntN(1+r.IntN(image))] ^= byte(1 + r.IntN(255))
			}
		})
	}
	for range step.Pick(30, 300, 3000) { // torn: the end of the image is of another time
		try(func(b []byte) { clear(b[64+r.IntN(image-64) : image]) })
	}
	t.Logf("%d are refused, %d held, %d empty", refused, held, before)
	assert.NotZero(t, held)
	assert.NotZero(t, refused)
}

// TestCheckpointBefore: if the newest image is refused, Read returns the one before it, and drops
// the newest.
func TestCheckpointBefore(t *testing.T) {
	p := newKeptPond(t, 3)
	for n := range uint64(2) {
		p.put(t, n, byte(n))
	}
	for range 2 {
		save.CheckpointImage(p.mine)[save.ControlOf(p.ring).Words[0]] = 99
		number, own, err := p.mine.Restore(background)
		require.NoError(t, err)
		assert.Zero(t, number)
		assert.Equal(t, []byte{0}, own)
		p.put(t, 2) // not over the one that was read
	}
	number, _, err := p.mine.Restore(background)
	require.NoError(t, err)
	assert.Equal(t, uint64(2), number)
}

// TestCheckpointBegins: without a Read, the first Write drops the checkpoint that the slot has, and
// takes its snapshot if the ring has no newer one.
func TestCheckpointBegins(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pond")
	c := checkpoints(t, name, checkpointPlan)
	p := newPond(t, open(t, pondPlan()), "level", 3)
	mine := attach(t, c, 0, p.ring)
	for n := range uint64(5) {
		p.step(n)
		require.NoError(t, mine.Write(n, nil))
		require.True(t, p.ring.Has(n))
	}
	assert.ErrorContains(t, mine.Write(1, nil), "the ring of 3 doesn't hold snapshot 1")
	before := hash(t, p.ring, 3)
	require.NoError(t, mine.Write(3, nil)) // an older one isn't taken again
	assert.Equal(t, before, hash(t, p.ring, 3))
	for _, reads := range []bool{true, false} {
		mine = attach(t, c, 0, p.ring)
		if reads {
			_, _, err := mine.Restore(background)
			require.NoError(t, err)
		}
		require.NoError(t, mine.Write(4, nil))
		save.CheckpointImage(mine)[save.ControlOf(p.ring).Words[0]] = 99
		number, _, err := mine.Restore(background)
		if reads {
			require.NoError(t, err)
			assert.EqualValues(t, 3, number)
		} else {
			assert.ErrorIs(t, err, save.ErrRefused)
		}
	}
}

// TestAttachInTheLoad: a load may attach the ring that it makes.
func TestAttachInTheLoad(t *testing.T) {
	c := checkpoints(t, filepath.Join(t.TempDir(), "pond"), checkpointPlan)
	var mine *save.Checkpoint
	_, root := loadProgram(t, func(p *program, _ *uint64) {
		var err error
		p.ring = save.NewRing(p.scope, 1, p.state)
		mine, err = c.Attach(1, p.ring)
		require.NoError(t, err)
		assert.ErrorIs(t, mine.Write(1, nil), budget.ErrLoading)
		_, _, err = mine.Restore(background)
		assert.ErrorIs(t, err, budget.ErrLoading)
	})
	*root = 7
	require.NoError(t, mine.Write(1, nil))
	*root = 8
	_, _, err := mine.Restore(background)
	require.NoError(t, err)
	assert.EqualValues(t, 7, *root)
}

// TestCheckpointRestoreGivesUp: after a Restore that a worker keeps waiting until its context ends,
// the state and the file are as before, and a Write begins a new state.
func TestCheckpointRestoreGivesUp(t *testing.T) {
	p := newKeptPond(t, 2)
	p.put(t, 1)
	p.put(t, 2)
	require.NoError(t, p.file.Close())
	q := newPond(t, open(t, pondPlan()), "level", 2)
	q.step(5)
	require.NoError(t, q.ring.Take(9))
	want := hash(t, q.ring, 9)
	c := checkpoints(t, p.name, checkpointPlan)
	mine := attach(t, c, 2, q.ring)
	file, err := os.ReadFile(p.name)
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	end()
	reader := q.region.Reader("anna")
	require.True(t, reader.Pin())
	_, _, err = mine.Restore(ctx)
	reader.Unpin()
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "save: Restore of checkpoint 2 of "+p.name+": ")
	now, err := os.ReadFile(p.name)
	require.NoError(t, err)
	assert.Equal(t, file, now)
	require.NoError(t, q.ring.Take(10))
	assert.Equal(t, want, hash(t, q.ring, 10))
	require.NoError(t, mine.Write(10, nil))
	save.CheckpointImage(mine)[save.ControlOf(q.ring).Words[0]] = 99
	_, _, err = mine.Restore(background)
	assert.ErrorIs(t, err, save.ErrRefused, "the Write dropped the checkpoint of the other process")
}

// TestCheckpointOfAnotherProgram: the error names the first difference.
func TestCheckpointOfAnotherProgram(t *testing.T) {
	p := newKeptPond(t, 2)
	p.put(t, 1)
	plan := pondPlan()
	plan.Name = "lake"
	p.pond = newPond(t, open(t, plan), "level", 2)
	p.mine = attach(t, p.file, 2, p.ring)
	_, _, err := p.mine.Restore(background)
	assert.ErrorIs(t, err, save.ErrRefused)
	assert.ErrorContains(t, err, `it is of another program, plan or data: the plan: "lake" here, and "pond" in the file`)
	p.put(t, 7)
	number, _, err := p.mine.Restore(background)
	require.NoError(t, err)
	assert.Equal(t, uint64(7), number)
}

// TestCheckpointOfAnOlderProgram: a checkpoint converts as a file does, and the next one has the
// types of the program that read it.
func TestCheckpointOfAnOlderProgram(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pond")
	var wrote []byte
	write := func(p *program, number uint64) {
		c := checkpoints(t, name, checkpointPlan)
		mine := attach(t, c, 0, p.ring)
		require.NoError(t, p.ring.Take(number))
		for range 2 { // both images
			require.NoError(t, mine.Write(number, []byte("lobby")))
		}
		wrote = save.Image(p.ring, number)
		require.NoError(t, c.Close())
	}
	reads := func(p *program, want uint64) error {
		c := checkpoints(t, name, checkpointPlan)
		number, own, err := attach(t, c, 0, p.ring).Restore(background)
		if err == nil {
			assert.Equal(t, want, number)
			assert.Equal(t, "lobby", string(own))
		}
		return errors.Join(err, c.Close())
	}
	func() {
		type Frog struct{ Age, Mood uint16 }
		p, _ := loadProgram(t, func(_ *program, f *Frog) { *f = Frog{7, 1} })
		write(p, 6)
	}()
	type Frog struct {
		Speed float64
		Ticks uint64
	}
	strict, _ := loadProgram(t, func(*program, *Frog) {})
	err := reads(strict, 6)
	assert.ErrorIs(t, err, save.ErrRefused)
	assert.ErrorContains(t, err, "type save_test.Frog, field 0: Speed, in the file Age")
	load := versioned[Frog](save.Dropped("save_test.Frog.Mood"), save.Renamed("save_test.Frog.Age", "Ticks"))
	p, f := loadProgram(t, load)
	require.NoError(t, reads(p, 6))
	assert.Equal(t, Frog{Ticks: 7}, *f)
	f.Speed, f.Ticks = 0.5, 8
	write(p, 7)
	next, f := loadProgram(t, load)
	require.NoError(t, reads(next, 7))
	assert.Equal(t, Frog{0.5, 8}, *f)
	assert.Equal(t, wrote, save.Image(next.ring, 7))
}

// TestCheckpointKilled kills a process at random moments. Each time the next one goes on from a
// whole checkpoint, whose hash is that of the same ticks played without an end.
func TestCheckpointKilled(t *testing.T) {
	const variable = "UPFRONT_SAVE_KILLED"
	if name := os.Getenv(variable); name != "" {
		p := newPond(t, open(t, pondPlan()), "level", 2)
		mine := attach(t, checkpoints(t, name, checkpointPlan), 1, p.ring)
		_, _, _ = mine.Restore(background) // the first process finds none
		for tick := 0; ; tick++ {
			p.step(p.room.Tick)
			require.NoError(t, p.ring.Take(p.room.Tick))
			require.NoError(t, mine.Write(p.room.Tick, nil))
			if tick == 0 {
				fmt.Println("plays")
			}
		}
	}
	name := filepath.Join(t.TempDir(), "pond")
	p, q := newPond(t, open(t, pondPlan()), "level", 3), newPond(t, open(t, pondPlan()), "level", 3)
	r := rand.New(rand.NewPCG(3, 1))
	for range step.Pick(5, 30, 300) {
		child := exec.Command(os.Args[0], "-test.run=^TestCheckpointKilled$")
		child.Env = append(os.Environ(), variable+"="+name)
		said, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, step.Start(child))
		_, err = fmt.Fscanln(said, new(string))
		require.NoError(t, err)
		for range r.IntN(8_000_000) { // no sleep is so short
		}
		require.NoError(t, child.Process.Kill())
		_ = child.Wait()
		c := checkpoints(t, name, checkpointPlan)
		number, _, err := attach(t, c, 1, q.ring).Restore(background)
		require.NoError(t, err)
		require.Greater(t, number, p.room.Tick)
		want := hash(t, q.ring, number)
		for p.room.Tick < number {
			p.step(p.room.Tick)
		}
		require.NoError(t, p.ring.Take(number))
		require.Equal(t, hash(t, p.ring, number), want)
		require.NoError(t, c.Close())
	}
	t.Logf("%d ticks", p.room.Tick)
	entries, err := os.ReadDir(filepath.Dir(name))
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

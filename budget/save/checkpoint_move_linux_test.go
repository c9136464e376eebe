package save_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/platform"
)

// moved is a file of checkpointPlan with a checkpoint in the slots 0 and 2.
type moved struct {
	ring  *save.Ring
	name  string
	file  []byte
	most  uint64 // the bytes that a checkpoint needs
	image []byte // of snapshot 3
}

func newMoved(t *testing.T) (m moved) {
	t.Helper()
	m.name = filepath.Join(t.TempDir(), "pond")
	c := checkpoints(t, m.name, checkpointPlan)
	p := newPond(t, open(t, pondPlan()), "level", 4)
	m.ring = p.ring
	for n := range uint64(4) {
		p.step(n)
		require.NoError(t, m.ring.Take(n))
	}
	for _, slot := range []int{0, 2} {
		mine := attach(t, c, slot, m.ring)
		for n := range uint64(4) {
			require.NoError(t, mine.Write(n, []byte{byte(n), byte(slot), 36: byte(n)}))
		}
		m.most = save.CheckpointNeed(mine)
	}
	require.NoError(t, c.Close())
	require.NoError(t, os.Link(m.name, m.name+".first"))
	m.image = bytes.Clone(save.Image(m.ring, 3))
	m.file = m.read(t)
	return m
}

func (m *moved) read(t *testing.T) []byte {
	t.Helper()
	file, err := os.ReadFile(m.name)
	require.NoError(t, err)
	return file
}

func (m *moved) files(t *testing.T) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(m.name))
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() != "pond.first" {
			list = append(list, e.Name())
		}
	}
	return list
}

// isAgain makes the name that of the first file, with other bytes. A new file would have another
// identity, as after a restart of the machine.
func (m *moved) isAgain(t *testing.T, file []byte) {
	t.Helper()
	require.NoError(t, os.Remove(m.name))
	require.NoError(t, os.WriteFile(m.name+".first", file, 0))
	require.NoError(t, os.Link(m.name+".first", m.name))
}

// is opens the file with a plan, and compares the checkpoints of some slots.
func (m *moved) is(t *testing.T, plan save.CheckpointPlan, slots ...int) {
	t.Helper()
	c := checkpoints(t, m.name, plan)
	defer c.Close()
	for _, slot := range slots {
		mine := attach(t, c, slot, m.ring)
		number, own, err := mine.Restore(background)
		require.NoError(t, err)
		assert.EqualValues(t, 3, number)
		assert.Equal(t, []byte{3, byte(slot), 36: 3}, own)
		assert.True(t, bytes.Equal(m.image, save.Image(m.ring, 3)))
		save.CheckpointImage(mine)[save.ControlOf(m.ring).Words[0]] ^= 99
		number, own, err = mine.Restore(background)
		require.NoError(t, err)
		assert.EqualValues(t, 2, number)
		assert.Equal(t, []byte{2, byte(slot), 36: 2}, own)
		require.NoError(t, mine.Write(3, []byte{3, byte(slot), 36: 3}))
	}
}

// TestCheckpointsMove: the checkpoints of a file go on in a file of another plan, and back.
func TestCheckpointsMove(t *testing.T) {
	m := newMoved(t)
	for _, plan := range []save.CheckpointPlan{
		{Slots: 9, Size: 64 << 10, Own: 40}, {Slots: 3, Size: 99_000, Own: 40}, {Slots: 3, Size: 64 << 10, Own: 4000},
		{Slots: 3, Size: m.most, Own: 37}, {Slots: 4, Size: 1 << 20, Own: 41}, checkpointPlan,
	} {
		m.is(t, plan, 0, 2)
		assert.Equal(t, []string{"pond"}, m.files(t))
		info, err := os.Stat(m.name)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode())
		c := checkpoints(t, m.name, plan)
		assert.Equal(t, []int{0, 2}, slotsOf(c))
		require.NoError(t, c.Close())
	}
}

// TestCheckpointsWithoutARoom: a checkpoint that the new plan has no room for is refused by name,
// the others go on, and the old file stays as it was.
func TestCheckpointsWithoutARoom(t *testing.T) {
	m := newMoved(t)
	for _, x := range []struct {
		plan save.CheckpointPlan
		here []int // whose checkpoints go on
		want save.CheckpointPlan
	}{
		{save.CheckpointPlan{Slots: 2, Size: 64 << 10, Own: 40}, []int{0},
			save.CheckpointPlan{Slots: 3, Size: 64 << 10, Own: 40}},
		{save.CheckpointPlan{Slots: 5, Size: m.most - 64, Own: 40}, nil,
			save.CheckpointPlan{Slots: 5, Size: m.most, Own: 40}},
		{save.CheckpointPlan{Slots: 1, Size: 64 << 10, Own: 36}, nil,
			save.CheckpointPlan{Slots: 3, Size: 64 << 10, Own: 37}},
	} {
		c := checkpoints(t, m.name, x.plan)
		assert.Equal(t, []int{0, 2}, slotsOf(c))
		assert.ElementsMatch(t, []string{"pond", "pond.old"}, m.files(t))
		reasons := map[int]error{}
		for slot, reason := range c.All() {
			reasons[slot] = reason
			assert.Equal(t, slices.Contains(x.here, slot), reason == nil)
			_, err := c.Own(slot)
			assert.Equal(t, reason, err)
		}
		var errs []error
		for _, slot := range []int{0, 2} {
			mine, err := c.Attach(slot, m.ring)
			if err == nil {
				_, _, err = mine.Restore(background)
			}
			if slices.Contains(x.here, slot) {
				require.NoError(t, err)
			} else {
				errs = append(errs, err)
			}
		}
		_, err := c.Attach(7, m.ring)
		assert.ErrorContains(t, err, "raise Slots to 8 or more")
		require.NoError(t, c.Close())
		last := errs[len(errs)-1]
		if x.want.Size == m.most { // Attach sees it first
			assert.ErrorContains(t, last, fmt.Sprintf("raise Size to %d or more", m.most))
			last = reasons[2]
		}
		assert.Equal(t, last, reasons[2])
		assert.ErrorIs(t, last, save.ErrRefused)
		assert.ErrorContains(t, last, fmt.Sprintf("save: checkpoint 2 of %s: %v: the file has CheckpointPlan%+v: "+
			"raise it to CheckpointPlan%+v or more; %[1]s.old has it", m.name, save.ErrRefused, x.plan, x.want))
		require.NoError(t, os.Rename(m.name+".old", m.name))
		assert.True(t, bytes.Equal(m.file, m.read(t)))
		m.is(t, checkpointPlan, 0, 2)
		require.NoError(t, os.WriteFile(m.name, m.file, 0o600))
	}
}

// TestCheckpointsMoveRefused: each error leaves the file as it was, and no other file.
func TestCheckpointsMoveRefused(t *testing.T) {
	m := newMoved(t)
	large := save.CheckpointPlan{Slots: 4, Size: 64 << 10, Own: 40}
	refused := func(name, text string) {
		t.Helper()
		_, err := save.OpenCheckpoints(name, large)
		assert.ErrorContains(t, err, text)
		assert.ErrorContains(t, err, "save: checkpoints "+name)
		assert.True(t, bytes.Equal(m.file, m.read(t)))
		assert.NoFileExists(t, m.name+".new")
	}
	for n := 1; ; n++ {
		require.Less(t, n, 20)
		tried := false
		for _, what := range []string{"allocate", "map", "populate"} {
			restore := platform.InjectFault(what, n)
			_, err := save.OpenCheckpoints(m.name, large)
			if !restore() {
				require.NoError(t, err)
				m.isAgain(t, m.file)
				continue
			}
			tried = true
			assert.ErrorContains(t, err, "injected fault")
			assert.True(t, bytes.Equal(m.file, m.read(t)))
			assert.Equal(t, []string{"pond"}, m.files(t))
		}
		if !tried {
			assert.Equal(t, 3, n)
			break
		}
	}
	require.NoError(t, os.Symlink(m.name, m.name+"2"))
	refused(m.name+"2", "it was made with CheckpointPlan{Slots:3 Size:65536 Own:40}: use these numbers, or begin "+
		"with a new file, because a link can't be replaced")
	require.NoError(t, os.Remove(m.name+"2"))

	// A process that was killed leaves its unfinished file.
	require.NoError(t, os.WriteFile(m.name+".new", m.file[:9999], 0o600))
	m.is(t, large, 0, 2)
	assert.Equal(t, []string{"pond"}, m.files(t))

	// A file from outside may be large.
	require.NoError(t, os.WriteFile(m.name, m.file[:save.CheckpointPage], 0o600))
	f, err := os.OpenFile(m.name, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(binary.LittleEndian.AppendUint64(nil, 3<<15), 16)
	require.NoError(t, errors.Join(err, f.Truncate(save.CheckpointPage+2*3<<15*int64(len(m.file)/6&^4095)), f.Close()))
	_, err = save.OpenCheckpoints(m.name, large)
	assert.ErrorIs(t, err, save.ErrRefused)
	assert.ErrorContains(t, err, "and has 13690212352 bytes: at most 1075986432 are moved to this plan")
}

// TestCheckpointsMoveOfMemory: a memfd can't be replaced, so another plan is refused.
func TestCheckpointsMoveOfMemory(t *testing.T) {
	fd, err := unix.MemfdCreate("pond", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	defer unix.Close(fd)
	name := fmt.Sprintf("/proc/self/fd/%d", fd)
	require.NoError(t, checkpoints(t, name, checkpointPlan).Close())
	_, err = save.OpenCheckpoints(name, save.CheckpointPlan{Slots: 4, Size: 64 << 10, Own: 40})
	assert.ErrorIs(t, err, save.ErrRefused)
	assert.ErrorContains(t, err, "a link can't be replaced")
	checkpoints(t, name, checkpointPlan)
}

// TestHostileCheckpointsMove: an entry of an old file may have any words.
func TestHostileCheckpointsMove(t *testing.T) {
	m := newMoved(t)
	large := save.CheckpointPlan{Slots: 4, Size: 64 << 10, Own: 50}
	half := (len(m.file) - save.CheckpointPage) / 6
	for word := range 8 {
		for _, value := range []uint64{0, 1, 41, 64, 1 << 16, 1<<16 + 1, 1 << 31, 1 << 32, 1<<63 - 1, 1 << 63,
			1<<64 - 1, 1<<64 - 63} {
			file := bytes.Clone(m.file)
			for i := range 2 {
				binary.LittleEndian.PutUint64(file[save.CheckpointPage+i*half+8*word:], value)
			}
			m.isAgain(t, file)
			c := checkpoints(t, m.name, large)
			for slot := range c.All() {
				if _, _, err := attach(t, c, slot, m.ring).Restore(background); err != nil {
					assert.ErrorIs(t, err, save.ErrRefused)
					assert.Zero(t, slot)
				}
			}
			require.NoError(t, c.Close())
		}
	}
}

// TestCheckpointsMoveAfterARestart: of a machine that stopped, only images that Sync completed
// move.
func TestCheckpointsMoveAfterARestart(t *testing.T) {
	m := newMoved(t)
	c := checkpoints(t, m.name, checkpointPlan)
	require.NoError(t, attach(t, c, 2, m.ring).Clear())
	require.NoError(t, c.Sync())
	mine := attach(t, c, 2, m.ring)
	require.NoError(t, mine.Write(1, nil))
	require.NoError(t, c.Close())
	require.NoError(t, os.WriteFile(m.name+"2", m.read(t), 0o600)) // a copy has another identity
	require.NoError(t, os.Rename(m.name+"2", m.name))
	large := save.CheckpointPlan{Slots: 4, Size: 64 << 10, Own: 40}
	c = checkpoints(t, m.name, large)
	assert.Equal(t, []int{0, 2}, slotsOf(c))
	_, _, err := attach(t, c, 2, m.ring).Restore(background)
	assert.ErrorIs(t, err, save.ErrRefused)
	assert.ErrorContains(t, err, "the machine has restarted or the file was copied, and no Sync completed it")
	require.NoError(t, c.Close())
	m.is(t, large, 0)
}

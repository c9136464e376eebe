package save_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

const keepers = 4

// keeper is a goroutine that plays ponds in the slots of a budget, one after the other, and keeps
// them in its checkpoint of a file that all keepers share.
type keeper struct {
	*rand.Rand
	t    *testing.T
	me   int // and the slot of the file
	all  *keeping
	last kept     // the checkpoint
	held []uint64 // the ring's snapshots on the way to the state
}

// kept is the contents of a checkpoint. Own is empty if there is no checkpoint.
type kept struct {
	number, hash uint64
	own          string
}

// keeping is a file of checkpoints with its keepers.
type keeping struct {
	t      *testing.T
	b      *budget.Budget
	file   *save.Checkpoints
	name   string
	still  sync.RWMutex // held to read by a keeper that changes the file; Sync excludes them
	images sync.Map     // CRC32 of a snapshot, by the own bytes of its checkpoint
	serial atomic.Uint64
	whole  atomic.Int64 // images that the reader of the file has seen
	list   [keepers]*keeper
}

func keptPlan() budget.Plan {
	return budget.Plan{Name: "kept", Regions: []budget.RegionPlan{{Name: "systems", Size: 4 * budget.KiB},
		{Name: "room", Size: 96 * budget.KiB, State: true, Slots: keepers - 1},
		{Name: "aside", Size: 64 * budget.KiB, On: budget.Root}}}
}

// live plays one pond for some steps, from the checkpoint on if there is one. It returns the number
// of steps.
func (k *keeper) live() (steps int) {
	room, err := k.all.b.Slots("room").Acquire()
	if err != nil {
		assert.ErrorIs(k.t, err, budget.ErrNoSlot)
		runtime.Gosched()
		return 1
	}
	defer func() { assert.NoError(k.t, room.Release(background)) }()
	k.held = nil
	p := pondIn(k.t, room, 3)
	mine := attach(k.t, k.all.file, k.me, p.ring)
	if k.last.own != "" && k.IntN(4) != 0 { // else the first Write drops it
		k.restores(p, mine)
	}
	for steps = 2; steps < 300 && k.IntN(100) != 0; steps++ {
		k.step(p, mine)
	}
	return steps
}

// step plays, or uses the ring and the checkpoint.
func (k *keeper) step(p *pond, mine *save.Checkpoint) {
	switch k.IntN(16) {
	default:
		p.step(k.Uint64())
	case 0, 1, 2:
		k.takes(p)
	case 3, 4, 5, 6:
		k.writes(p, mine)
	case 7:
		if n, ok := k.any(p); ok {
			require.NoError(k.t, p.ring.Restore(background, n))
			require.Equal(k.t, n, p.room.Tick)
			k.went(n)
		}
	case 8:
		if k.last.own != "" && k.IntN(4) == 0 {
			k.restores(p, mine)
		}
	case 9:
		if k.IntN(20) == 0 {
			k.all.still.RLock()
			defer k.all.still.RUnlock()
			require.NoError(k.t, mine.Clear())
			k.last = kept{}
		}
		own, err := k.all.file.Own(k.me)
		require.Equal(k.t, k.last.own, string(own))
		require.Equal(k.t, k.last.own == "", err != nil)
	}
}

func (k *keeper) takes(p *pond) {
	require.NoError(k.t, p.ring.Take(p.room.Tick))
	k.went(p.room.Tick)
}

// went notes that the state is that of a snapshot. The ring's later ones are of another future.
func (k *keeper) went(n uint64) {
	k.held = append(slices.DeleteFunc(k.held, func(o uint64) bool { return o >= n }), n)
}

// any returns a snapshot that the ring holds.
func (k *keeper) any(p *pond) (n uint64, ok bool) {
	k.held = slices.DeleteFunc(k.held, func(n uint64) bool { return !p.ring.Has(n) })
	if len(k.held) == 0 {
		return 0, false
	}
	return k.held[k.IntN(len(k.held))], true
}

// writes writes a snapshot of this moment, or an older one.
func (k *keeper) writes(p *pond, mine *save.Checkpoint) {
	n, ok := k.any(p)
	if !ok || k.IntN(2) == 0 {
		k.takes(p)
		n = p.room.Tick
	}
	now := kept{n, hash(k.t, p.ring, n), fmt.Sprintf("keeper %d, %d", k.me, k.all.serial.Add(1))}
	k.all.images.Store(now.own, crc32.ChecksumIEEE(save.Image(p.ring, n)))
	k.all.still.RLock()
	defer k.all.still.RUnlock()
	require.NoError(k.t, mine.Write(n, []byte(now.own)))
	require.Equal(k.t, save.Image(p.ring, n), save.CheckpointImage(mine))
	k.last = now
}

func (k *keeper) restores(p *pond, mine *save.Checkpoint) {
	k.all.still.RLock()
	defer k.all.still.RUnlock()
	k.last.restores(k.t, p, mine)
	k.went(k.last.number)
}

// restores restores a checkpoint, which is l.
func (l kept) restores(t *testing.T, p *pond, mine *save.Checkpoint) {
	number, own, err := mine.Restore(background)
	require.NoError(t, err)
	require.Equal(t, l, kept{number, hash(t, p.ring, number), string(own)})
	require.Equal(t, number, p.room.Tick)
}

// reads reads an image of the file while keepers write. An image with the same head and own bytes
// before and after is the snapshot of that Write.
func (g *keeping) reads(file *os.File, at int64) {
	var head, again [128]byte
	_, err := file.ReadAt(head[:], at)
	require.NoError(g.t, err)
	word := func(i int) int64 { return int64(binary.LittleEndian.Uint64(head[8*i:])) }
	if word(0) == 0 || word(2) > int64(checkpointPlan.Size) || word(3) > int64(checkpointPlan.Size) || word(4) > 40 {
		return // in a write
	}
	image := make([]byte, word(3))
	_, err = file.ReadAt(image, at+128+(word(2)+63)&^63)
	require.NoError(g.t, err)
	_, err = file.ReadAt(again[:], at)
	require.NoError(g.t, err)
	if head != again {
		return
	}
	want, ok := g.images.Load(string(head[64:][:word(4)]))
	require.True(g.t, ok)
	require.Equal(g.t, want, crc32.ChecksumIEEE(image), "%s is torn", head[64:][:word(4)])
	g.whole.Add(1)
}

// again finds the checkpoints of this moment in a copy of the file, as another process does.
func (g *keeping) again(b *budget.Budget) {
	name := filepath.Join(g.t.TempDir(), "again")
	var list [keepers]kept
	func() {
		g.still.Lock()
		defer g.still.Unlock()
		require.NoError(g.t, g.file.Sync())
		bytes, err := os.ReadFile(g.name)
		require.NoError(g.t, err)
		require.NoError(g.t, os.WriteFile(name, bytes, 0o600))
		for i, k := range g.list {
			list[i] = k.last
		}
	}()
	c, err := save.OpenCheckpoints(name, checkpointPlanOf(keepers))
	require.NoError(g.t, err)
	var want []int
	room, err := b.Slots("room").Acquire()
	require.NoError(g.t, err)
	p := pondIn(g.t, room, 2)
	for slot, l := range list {
		if l.own != "" {
			want = append(want, slot)
			l.restores(g.t, p, attach(g.t, c, slot, p.ring))
		}
	}
	require.Equal(g.t, want, slotsOf(c))
	require.NoError(g.t, room.Release(background))
	require.NoError(g.t, c.Close())
	require.NoError(g.t, os.Remove(name))
}

func checkpointPlanOf(slots int) save.CheckpointPlan {
	plan := checkpointPlan
	plan.Slots = slots
	return plan
}

// TestCheckpointGoroutines: goroutines acquire, load and release slots, take and restore snapshots,
// and write, restore and clear the checkpoints of one file at once. At any moment each image that
// counts is whole. Another process finds the last Write of each.
func TestCheckpointGoroutines(t *testing.T) {
	g := &keeping{t: t, b: open(t, keptPlan()), name: filepath.Join(t.TempDir(), "ponds")}
	g.file = checkpoints(t, g.name, checkpointPlanOf(keepers))
	other := open(t, keptPlan())
	var all, beside sync.WaitGroup
	var steps atomic.Int64
	for me := range g.list {
		k := &keeper{Rand: rand.New(rand.NewPCG(uint64(me), 70)), t: t, me: me, all: g}
		g.list[me] = k
		all.Go(func() {
			for n := 0; n < step.Pick(1000, 3000, 260_000); {
				did := k.live()
				n += did
				steps.Add(int64(did))
			}
		})
	}
	done, end := context.WithCancel(background)
	until := func(do func()) {
		beside.Go(func() {
			for done.Err() == nil {
				do()
				runtime.Gosched()
			}
		})
	}
	if runtime.GOARCH == "amd64" { // elsewhere another thread may see stores in another order
		file, err := os.Open(g.name)
		require.NoError(t, err)
		defer file.Close()
		size, err := file.Stat()
		require.NoError(t, err)
		image := (size.Size() - save.CheckpointPage) / (2 * keepers)
		until(func() {
			for i := range int64(2 * keepers) {
				g.reads(file, save.CheckpointPage+i*image)
			}
		})
	}
	until(func() {
		_, err := budget.Load(background, g.b.Region("aside"), func(s scope.Scope) (*room, error) {
			return roomMaker.New(s), nil
		})
		require.NoError(t, err)
		g.again(other)
	})
	all.Wait()
	end()
	beside.Wait()
	g.again(other)
	t.Logf("%d steps, %d writes, %d whole images were read meanwhile", steps.Load(), g.serial.Load(), g.whole.Load())
	assert.NotZero(t, g.serial.Load())
}

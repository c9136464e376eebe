package save

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
)

// ErrRefused is wrapped by each error of a checkpoint, or of a file of checkpoints, that this
// program can't read: damaged, or of another program, plan or version. The file is unchanged.
// Rename the file to begin with a new one.
var ErrRefused = errors.New("a checkpoint that this program can't read")

// A file of checkpoints has a page with its head, and for each slot two images, each from a page's
// start on: an entry of eight words, the program's own bytes, the description of the types as JSON,
// and the snapshot. The words have the machine's byte order, and all parts begin at a cache line.
// An image is whole if its sequence isn't 0. The newer one has the higher sequence. Say a slot has
// the sequences 8 and 9. A write sets the 8 to 0, writes that image, and stores 10 last. So a kill
// at any instruction leaves the 9 or the 10, and no other image counts.

// checkpointHead is the start of the file. While made is 0, the file is in the making.
type checkpointHead struct {
	magic            [8]byte
	order            uint64
	slots, size, own uint64 // the plan
	owner            uint64 // the process that opened the file last
	made             uint64
	_                uint64
	identity         [32]byte // see platform.Shared.Identity
}

// checkpointEntry is the start of an image.
type checkpointEntry struct {
	sequence              uint64 // 0: the image isn't whole
	number                uint64 // of the snapshot
	text, image, own      uint64 // sizes in bytes
	fingerprint, textHash uint64
	sum                   uint64 // the CRC32C of all other bytes, and summed; or 0
}

const (
	checkpointMagic = "upcheck1" // the digit is the version
	checkpointOrder = 0x0102030405060708
	checkpointPage  = 4096
	checkpointHeads = int(unsafe.Sizeof(checkpointHead{}))
	checkpointEnts  = int(unsafe.Sizeof(checkpointEntry{}))
	checkpointsMost = 1 << 40 // bytes of a file

	summed = 1 << 32
)

// CheckpointPlan is the size of a file of checkpoints. The file takes about twice Size+Own bytes
// for each slot. On a tmpfs and in a memfd these bytes are memory, which a container's limit
// counts.
type CheckpointPlan struct {
	Slots int // the number of checkpoints
	// Size is the number of bytes for a snapshot and its description. A snapshot takes at most
	// Ring.Size bytes. A description takes some KiB, more in a checked build. If Size is too small,
	// Attach returns an error with the number to set.
	Size uint64
	Own  uint64 // the maximum of the program's own bytes in each checkpoint
}

// check returns the size of an image and of the file.
func (p CheckpointPlan) check() (image, file uint64, err error) {
	const most = checkpointsMost
	if p.Slots < 1 || p.Size == 0 || p.Size > most || p.Own > most {
		return 0, 0, fmt.Errorf("save: BUG: a CheckpointPlan of %d slots, each of %d bytes and %d of the program's own",
			p.Slots, p.Size, p.Own)
	}
	image = (lines(uint64(checkpointEnts)+p.Own) + lines(p.Size) + checkpointPage - 1) &^ (checkpointPage - 1)
	if uint64(p.Slots) > most/image/2 {
		return 0, 0, fmt.Errorf("save: BUG: a CheckpointPlan of more than %d bytes", uint64(most))
	}
	return image, checkpointPage + 2*uint64(p.Slots)*image, nil
}

// lines rounds up to whole cache lines.
func lines(size uint64) uint64 { return (size + arena_c.LineSize - 1) &^ (arena_c.LineSize - 1) }

// Checkpoints is a file of checkpoints: the newest snapshot of each of several states, which
// outlive the process. If the process is killed at any instruction, the next one finds the last
// complete checkpoint of each slot.
type Checkpoints struct {
	name    string
	plan    CheckpointPlan
	image   uint64 // bytes of an image
	shared  *platform.Shared
	refused []error // by slot, also those of an earlier plan: why a checkpoint was dropped
}

// OpenCheckpoints opens the file of checkpoints of that name, or makes it. It reserves the file's
// space and makes all pages present. From then on [Checkpoint.Write] makes no system call and no
// Go allocation, and on a tmpfs or memfd it causes no page fault. The name decides how long the
// checkpoints last:
//
//	                          process killed   machine stops   file made shorter
//	a tmpfs, /dev/shm/NAME    kept             lost            an error of Write
//	a memfd, /proc/self/fd/3  kept             lost            impossible
//	a file on a disk          kept             kept by Sync    an error of Write
//
// A memfd lasts as long as a process has it open: the supervisor of this process makes it, with
// MFD_ALLOW_SEALING, and passes it to each new process. OpenCheckpoints seals its size. On a disk,
// a Write may cause page faults and wait for the disk.
//
// The file has mode 0600, because a state may hold keys. One process at a time has it open. For
// another one OpenCheckpoints returns an error that has the owner's number and wraps
// syscall.EWOULDBLOCK. It returns an error that wraps [ErrRefused] for a file that is cut or
// zeroed, or isn't a file of checkpoints of this version and byte order. It also fails if the file
// system is full or read-only, or the file may be accessed by other users. Each error leaves the
// file as it was.
//
// A file of another plan moves to the new plan: OpenCheckpoints makes the file NAME.new, copies the
// checkpoints, and renames it to NAME. If the process is killed during the call, NAME is the old
// file or the new one. For that time the file system holds both. If a checkpoint has no room in the
// new plan, [Checkpoints.Attach] or [Checkpoint.Restore] returns the reason, and the old file stays
// as NAME.old. A link, such as /proc/self/fd/3, can't be replaced, so its file of another plan is
// refused.
//
// If the machine has restarted since a checkpoint was written, its pages may be of different times.
// Then only a checkpoint counts that [Checkpoints.Sync] completed; [Checkpoint.Restore] returns the
// reason for the others. The same holds for a copy of a file.
func OpenCheckpoints(name string, plan CheckpointPlan) (*Checkpoints, error) {
	c, err := openCheckpoints(name, plan)
	if err == nil && c.plan != plan {
		c, err = c.move(plan)
	}
	if err != nil {
		return nil, fmt.Errorf("save: checkpoints %s, CheckpointPlan%+v: %w", name, plan, err)
	}
	return c, nil
}

// openCheckpoints opens a file of any plan, or makes one of this plan. If the plan is another one,
// the file is unchanged.
func openCheckpoints(name string, plan CheckpointPlan) (*Checkpoints, error) {
	_, size, err := plan.check()
	if err != nil {
		return nil, err
	}
	head := checkpointHead{order: checkpointOrder, slots: uint64(plan.Slots), size: plan.Size, own: plan.Own}
	copy(head.magic[:], checkpointMagic)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&head)), checkpointHeads)
	there := plan
	shared, isNew, err := platform.OpenShared(name, size, raw, func(first []byte, has uint64) (err error) {
		there, err = plan.admits(first, has)
		return err
	})
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("process %d has it: %w", ownerOf(name), err)
	}
	if err != nil {
		return nil, err
	}
	image, _, _ := there.check()
	c := &Checkpoints{name: name, plan: there, image: image, shared: shared, refused: make([]error, there.Slots)}
	if there == plan {
		if err = platform.OnLoss(func() error { return c.begin(isNew) }); err != nil {
			return nil, errors.Join(err, c.shared.Close())
		}
	}
	return c, nil
}

// admits returns the plan of a file, or an error for a file that isn't whole. first has the bytes
// of a checkpointHead, or fewer.
func (p CheckpointPlan) admits(first []byte, has uint64) (there CheckpointPlan, err error) {
	var head checkpointHead
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&head)), checkpointHeads)
	bad := func(text string, args ...any) (CheckpointPlan, error) {
		return there, fmt.Errorf(text+": %w", append(args, ErrRefused)...)
	}
	n := copy(raw, first)
	there = CheckpointPlan{int(head.slots), head.size, head.own}
	_, size, err := there.check()
	_, most, _ := p.check()
	most = movedMost(most)
	switch {
	case isZero(first):
		return bad("its first %d bytes are zeros", n)
	case string(head.magic[:7]) != checkpointMagic[:7]:
		return bad("it isn't a file of checkpoints")
	case head.magic[7] != checkpointMagic[7]:
		return bad("it has version %q, and this program reads %q", head.magic[7:], checkpointMagic[7:])
	case n < len(raw):
		return bad("it is cut: it has %d bytes, and its head has %d", has, len(raw))
	case head.order != checkpointOrder:
		return bad("a machine of another byte order wrote it: its mark is %#x, and %#x here", head.order,
			uint64(checkpointOrder))
	case head.slots > math.MaxInt || err != nil:
		return bad("it was made with CheckpointPlan%+v", there)
	case has != size:
		return bad("it is cut: it has %d bytes of %d, for CheckpointPlan%+v", has, size, there)
	case size > most:
		return bad("it was made with CheckpointPlan%+v, and has %d bytes: at most %d are moved to this plan", there,
			size, most)
	}
	return there, nil
}

// ownerOf returns the process that opened a file last, or 0.
func ownerOf(name string) uint64 {
	f, err := os.Open(name)
	if err != nil {
		return 0
	}
	defer f.Close()
	var head checkpointHead
	_, _ = io.ReadFull(f, unsafe.Slice((*byte)(unsafe.Pointer(&head)), checkpointHeads))
	return head.owner
}

// begin makes the file this process's.
func (c *Checkpoints) begin(isNew bool) error {
	id, err := c.shared.Identity()
	if err != nil {
		return err
	}
	if !isNew && c.head().identity != id {
		for slot := range c.plan.Slots {
			c.refused[slot] = c.drop(slot)
		}
	}
	c.head().identity, c.head().owner = id, uint64(os.Getpid())
	atomic.StoreUint64(&c.head().made, 1)
	return nil
}

func (c *Checkpoints) head() *checkpointHead { return (*checkpointHead)(startOf(c.shared.Bytes())) }

// drop removes those images of a slot that may be of different times, and returns the reason if no
// other is left.
func (c *Checkpoints) drop(slot int) (err error) {
	left := 0
	for half := range 2 {
		e := c.entry(slot, half)
		if e.sequence == 0 {
			continue
		}
		if lost := c.isComplete(slot, half); lost != nil {
			err = lost
			atomic.StoreUint64(&e.sequence, 0)
		} else {
			left++
		}
	}
	if left != 0 {
		return nil
	}
	return err
}

// isComplete returns an error for an image that Sync hasn't completed.
func (c *Checkpoints) isComplete(slot, half int) error {
	if e := c.entry(slot, half); e.sum&summed != 0 && c.check(slot, half, *e) == nil {
		return nil
	}
	return fmt.Errorf("save: checkpoint %d of %s: since it was written, the machine has restarted or the file "+
		"was copied, and no Sync completed it: %w", slot, c.name, ErrRefused)
}

// bytes returns one of the two images of a slot.
func (c *Checkpoints) bytes(slot, half int) []byte {
	at := checkpointPage + uint64(2*slot+half)*c.image
	return c.shared.Bytes()[at:][:c.image:c.image]
}

func (c *Checkpoints) entry(slot, half int) *checkpointEntry {
	return (*checkpointEntry)(startOf(c.bytes(slot, half)))
}

// parts returns the parts of an image. pre: the entry has passed check, or is this process's.
func (c *Checkpoints) parts(slot, half int, e *checkpointEntry) (own, text, image []byte) {
	b := c.bytes(slot, half)[checkpointEnts:]
	own = b[:e.own]
	b = b[lines(uint64(checkpointEnts)+c.plan.Own)-uint64(checkpointEnts):]
	return own, b[:e.text], b[lines(e.text):][:e.image]
}

// check returns an error for an entry that no Write has left. e is a copy of the entry.
func (c *Checkpoints) check(slot, half int, e checkpointEntry) error {
	if e.own > c.plan.Own || e.text > layoutMost || e.image > c.plan.Size ||
		lines(e.text)+e.image > lines(c.plan.Size) {
		return fmt.Errorf("it has %d bytes of description, %d of a snapshot and %d of the program's own, for "+
			"CheckpointPlan%+v", e.text, e.image, e.own, c.plan)
	}
	if e.sum == 0 {
		return nil
	}
	if sum := c.sum(slot, half, &e); sum != e.sum {
		return fmt.Errorf("it is damaged: its checksum is %#x, and it says %#x", sum, e.sum)
	}
	return nil
}

// sum returns the sum of an image for its entry.
func (c *Checkpoints) sum(slot, half int, e *checkpointEntry) uint64 {
	own, text, image := c.parts(slot, half, e)
	var words []byte
	for _, word := range []uint64{e.sequence, e.number, e.text, e.image, e.own, e.fingerprint, e.textHash,
		uint64(sumOf(own)), uint64(sumOf(text)), uint64(sumOf(image))} {
		words = binary.LittleEndian.AppendUint64(words, word)
	}
	return uint64(sumOf(words)) | summed
}

// All returns the slots that have a checkpoint, in order. For each of them the program loads the
// state as always, and calls [Checkpoints.Attach] and [Checkpoint.Restore]. Call All at the start:
// until it ends, Write and Clear may change only slots that it has returned. For a checkpoint that
// this process can't read, All returns an error with the reason if it is known without the state:
// the machine has restarted, or the plan has no room for the checkpoint. The slot then is one of an
// earlier plan, and this plan may not have it.
func (c *Checkpoints) All() iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for slot, err := range c.refused {
			if (err != nil || c.sequences(slot) != [2]uint64{}) && !yield(slot, err) {
				return
			}
		}
	}
}

// Own returns a copy of the program's own bytes in the newest checkpoint of a slot. Call it if the
// choice of the load depends on them. After the load only the bytes of [Checkpoint.Restore] count,
// because Restore may refuse the newest checkpoint. Own returns an error if the slot has none, or
// one that Restore refuses for a reason that is known before the load.
func (c *Checkpoints) Own(slot int) (own []byte, err error) {
	if err = c.isSlot(slot); err == nil {
		err = c.refused[slot]
	}
	if errors.Is(err, ErrRefused) {
		return nil, err
	}
	if err != nil {
		return nil, (&Checkpoint{of: c, slot: slot}).bad("Own", err)
	}
	err = platform.OnLoss(func() error {
		list, half := c.sequences(slot), 0
		if list[1] > list[0] {
			half = 1
		}
		if list[half] == 0 {
			return errors.New("it is empty")
		}
		e := *c.entry(slot, half)
		if err := c.check(slot, half, e); err != nil {
			return fmt.Errorf("%w: %w", ErrRefused, err)
		}
		ours, _, _ := c.parts(slot, half, &e)
		own = bytes.Clone(ours)
		return nil
	})
	return own, (&Checkpoint{of: c, slot: slot}).bad("Own", err)
}

// isSlot returns an error for a slot that the plan doesn't have.
func (c *Checkpoints) isSlot(slot int) error {
	switch {
	case slot >= 0 && slot < c.plan.Slots:
		return nil
	case slot >= 0 && slot < len(c.refused) && c.refused[slot] != nil:
		return c.refused[slot]
	}
	if slot < 0 {
		return errors.New("slots count from 0")
	}
	return fmt.Errorf("it has CheckpointPlan%+v: raise Slots to %d or more", c.plan, uint64(slot)+1)
}

// sequences returns the sequences of a slot's images. It returns zeros after Close, and if the file
// was made shorter.
func (c *Checkpoints) sequences(slot int) (list [2]uint64) {
	if c.shared.Bytes() == nil || slot >= c.plan.Slots {
		return list
	}
	_ = platform.OnLoss(func() error {
		for half := range list {
			list[half] = c.entry(slot, half).sequence
		}
		return nil
	})
	return list
}

// Sync makes the current checkpoints survive a stop of the machine, if the file is on a disk. It
// computes checksums, and returns when all bytes are on the disk. The promise for a checkpoint
// holds until the second Write after Sync. So call Sync when play has ended, or is about to. No
// Write may run during the call.
func (c *Checkpoints) Sync() error {
	err := c.open()
	if err == nil {
		err = platform.OnLoss(func() error {
			for slot := range c.plan.Slots {
				for half := range 2 {
					if e := c.entry(slot, half); e.sequence != 0 && e.sum == 0 {
						if err := c.check(slot, half, *e); err != nil {
							continue // Restore refuses it
						}
						e.sum = c.sum(slot, half, e)
					}
				}
			}
			return c.shared.Sync()
		})
	}
	if err != nil {
		return fmt.Errorf("save: Sync of checkpoints %s: %w", c.name, err)
	}
	return nil
}

func (c *Checkpoints) open() error {
	if c.shared.Bytes() == nil {
		return errors.New("they are closed")
	}
	return nil
}

// Close unmaps the file, so that another process can open it. The checkpoints stay in the file. No
// other call may run meanwhile; later calls fail.
func (c *Checkpoints) Close() error {
	if err := c.shared.Close(); err != nil {
		return fmt.Errorf("save: Close of checkpoints %s: %w", c.name, err)
	}
	return nil
}

// Checkpoint is a slot of a file for the snapshots of one ring. One goroutine at a time may use it,
// the one that uses the ring. Different checkpoints of a file may be used at the same time.
type Checkpoint struct {
	of     *Checkpoints
	slot   int
	ring   *Ring
	fresh  [2]bool // the image is not of this ring
	begins bool    // the next Write drops an old checkpoint
}

// Attach returns the checkpoint of a slot for the snapshots of a ring. Call it in the load that
// makes the ring, or later and before play, because Attach makes Go allocations. If the slot has an
// old checkpoint, call [Checkpoint.Restore] before Write to go on from it. Without a Restore, the
// first Write begins a new state and drops the old checkpoint. A ring has one checkpoint: after a
// second Attach the first checkpoint's Write and Restore fail. Attach fails if a state isn't in a
// state region, or if a snapshot of the ring may need more bytes than the plan has. The error then
// has the number to set.
func (c *Checkpoints) Attach(slot int, r *Ring) (*Checkpoint, error) {
	bad := func(err error) (*Checkpoint, error) {
		return nil, fmt.Errorf("save: Attach to checkpoint %d of %s: %w", slot, c.name, err)
	}
	if err := c.isSlot(slot); errors.Is(err, ErrRefused) {
		return nil, err
	} else if err != nil {
		return bad(err)
	}
	for _, check := range []func() error{c.open, r.check, func() error { return r.states("Attach") },
		r.describeFile} {
		if err := check(); err != nil && !errors.Is(err, budget.ErrLoading) {
			return bad(err)
		}
	}
	text, most := uint64(len(r.text)), uint64(r.most)
	if need := lines(text) + lines(most); need > lines(c.plan.Size) {
		return bad(fmt.Errorf("a snapshot of %d bytes and %d of description, and the file has CheckpointPlan%+v: "+
			"raise Size to %d or more", most, text, c.plan, need))
	}
	for i := range r.parts {
		r.parts[i].tracking.attach()
	}
	r.checkpoint = &Checkpoint{of: c, slot: slot, ring: r, fresh: [2]bool{true, true}, begins: true}
	return r.checkpoint, nil
}

// check returns an error if the checkpoint can't be used any more.
func (p *Checkpoint) check(what string) error {
	err := p.of.open()
	if err == nil && p.ring.checkpoint != p {
		err = errors.New("its ring was attached again")
	}
	if err == nil {
		err = p.ring.check()
	}
	return p.bad(what, err)
}

func (p *Checkpoint) bad(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("save: %s of checkpoint %d of %s: %w", what, p.slot, p.of.name, err)
}

// Write makes the ring's snapshot with that number the checkpoint, with a copy of the program's own
// bytes. If the number is higher than those of all snapshots in the ring, Write makes the snapshot
// first, as [Ring.Take] does. Snapshots that Take made before a [Ring.Restore] to a lower number
// don't count there: Write makes them again. A second Write of a number writes the same snapshot
// again. If the process is killed during the call, the checkpoint before it counts. Write copies
// the snapshot into the file. For a tracked region (budget.RegionPlan.Track) it copies only the
// pages that were written since the last Write but one. Write makes no system call except those of
// a Take, and no Go allocation unless it fails.
//
// Write fails if Take fails, if the ring doesn't hold the snapshot any more, if own has more bytes
// than the plan, or after Close. If another process made the file shorter, the error wraps
// syscall.EIO. After an error the checkpoint before counts.
func (p *Checkpoint) Write(number uint64, own []byte) error {
	if err := p.check("Write"); err != nil {
		return err
	}
	if p.ring.isNext(number) {
		if err := p.ring.Take(number); err != nil {
			return p.bad("Write", err)
		}
	}
	s, err := p.ring.state("Write of a checkpoint", number)
	if err != nil {
		return err
	}
	if uint64(len(own)) > p.of.plan.Own {
		return p.bad("Write", fmt.Errorf("%d bytes of the program's own, and the file has CheckpointPlan%+v: raise "+
			"Own to %[1]d or more", len(own), p.of.plan))
	}
	err = platform.OnLoss(func() error {
		p.write(s, own)
		return nil
	})
	if err != nil {
		return p.bad("Write", err)
	}
	return nil
}

// write writes the older image. Its sequence is 0 meanwhile.
func (p *Checkpoint) write(s *slot, own []byte) {
	half := 0
	older, newer := p.of.entry(p.slot, 0), p.of.entry(p.slot, 1)
	if older.sequence > newer.sequence {
		half, older, newer = 1, newer, older
	}
	atomic.StoreUint64(&older.sequence, 0)
	r := p.ring
	older.number, older.sum = s.number, 0
	older.text, older.image, older.own = uint64(len(r.text)), uint64(s.used), uint64(len(own))
	older.fingerprint, older.textHash = r.described.fingerprint, uint64(r.described.layoutSum)
	toOwn, toText, toImage := p.of.parts(p.slot, half, older)
	copy(toOwn, own)
	if p.fresh[half] {
		copy(toText, r.text)
		clear(toImage) // also the lines' ends
	}
	r.copyTo(toImage, half, s, p.fresh[half])
	p.fresh[half] = false
	atomic.StoreUint64(&older.sequence, newer.sequence+1)
	if p.begins {
		atomic.StoreUint64(&newer.sequence, 0)
		p.of.refused[p.slot], p.begins = nil, false
	}
}

// Restore reads the checkpoint into the ring and restores the state from it, as [Ring.Read] and
// [Ring.Restore] do. It returns the snapshot's number and a copy of the program's own bytes, which
// the program checks itself. If the newest snapshot is refused and the one before isn't, Restore
// goes on from the one before and drops the newest. But a snapshot that doesn't convert
// ([State.Version]) isn't dropped, because an older program can go on from it. An error wraps
// ErrRefused if there is a checkpoint and it was refused. After an error the state and the file are
// as before, unless a function of [State.Rebuild] failed.
func (p *Checkpoint) Restore(ctx context.Context) (number uint64, own []byte, err error) {
	if err := p.check("Restore"); err != nil {
		return 0, nil, err
	}
	list := p.of.sequences(p.slot)
	newest := 0
	if list[1] > list[0] {
		newest = 1
	}
	var errs []error
	for _, half := range []int{newest, 1 - newest} {
		if list[half] == 0 {
			continue
		}
		err := platform.OnLoss(func() (err error) {
			number, own, err = p.read(half)
			return err
		})
		if err == nil {
			return number, own, p.bad("Restore", p.goOn(ctx, number, half))
		}
		if errs = append(errs, err); errors.As(err, new(*conversionError)) {
			break
		}
	}
	switch refused := p.of.refused[p.slot]; {
	case len(errs) != 0:
		return 0, nil, p.bad("Restore", fmt.Errorf("%w: %w", ErrRefused, errs[0]))
	case refused != nil:
		return 0, nil, refused
	}
	return 0, nil, p.bad("Restore", errors.New("it is empty"))
}

// goOn restores the state from the ring's snapshot of an image, and drops a newer image.
func (p *Checkpoint) goOn(ctx context.Context, number uint64, half int) error {
	if err := p.ring.Restore(ctx, number); err != nil {
		return err
	}
	p.begins = false
	return platform.OnLoss(func() error {
		mine, other := p.of.entry(p.slot, half), p.of.entry(p.slot, 1-half)
		if other.sequence > mine.sequence {
			atomic.StoreUint64(&other.sequence, 0)
		}
		return nil
	})
}

func (p *Checkpoint) read(half int) (number uint64, own []byte, err error) {
	e := *p.of.entry(p.slot, half)
	if err := p.of.check(p.slot, half, e); err != nil {
		return 0, nil, err
	}
	ours, text, image := p.of.parts(p.slot, half, &e)
	own = bytes.Clone(ours)
	head := fileHead{layoutSize: e.text, imageSize: e.image, number: e.number, fingerprint: e.fingerprint,
		layoutSum: uint32(e.textHash), imageSum: sumOf(image)}
	number, err = p.ring.Read(io.MultiReader(bytes.NewReader(head.append(nil)), bytes.NewReader(text),
		bytes.NewReader(image)))
	return number, own, err
}

// Clear empties the checkpoint, so that the next process doesn't find it. A kill during the call
// leaves the last checkpoint, or none. Clear makes no system call and no Go allocation.
func (p *Checkpoint) Clear() error {
	if err := p.of.open(); err != nil {
		return p.bad("Clear", err)
	}
	p.of.refused[p.slot] = nil
	return p.bad("Clear", platform.OnLoss(func() error {
		first, last := p.of.entry(p.slot, 0), p.of.entry(p.slot, 1)
		if first.sequence > last.sequence {
			first, last = last, first
		}
		atomic.StoreUint64(&first.sequence, 0)
		atomic.StoreUint64(&last.sequence, 0)
		return nil
	}))
}

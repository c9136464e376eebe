package save

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/upfront-mem/upfront/platform"
)

// A program that raises Slots or Size reads the file of its older version. Its size can't change in
// place: each image would move, and a kill in between would leave a mix. So the images are copied
// to a new file, which then takes the name. Both files are locked meanwhile. A kill before the
// rename leaves the old file, and the next process removes the unfinished one.

// movedMost returns the maximum size of a file that moves to a file of size bytes. A file from
// outside may not take more memory.
func movedMost(size uint64) uint64 { return 4*size + 1<<30 }

// move returns the file of another plan that takes the name of c, with the checkpoints of c. It
// closes c.
func (c *Checkpoints) move(plan CheckpointPlan) (to *Checkpoints, err error) {
	defer func() { // it also ends the lock
		if failed := c.Close(); failed != nil {
			err = errors.Join(err, failed)
			if to != nil { // the new file is whole, and the next OpenCheckpoints has it
				err, to = errors.Join(err, to.Close()), nil
			}
		}
	}()
	bad := func(err error) (*Checkpoints, error) {
		return nil, fmt.Errorf("it was made with CheckpointPlan%+v: %w", c.plan, err)
	}
	if info, err := os.Lstat(c.name); err != nil {
		return bad(err)
	} else if !info.Mode().IsRegular() {
		return bad(fmt.Errorf("use these numbers, or begin with a new file, because a link can't be replaced: %w",
			ErrRefused))
	}
	name := c.name + ".new"
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return bad(err)
	}
	if to, err = openCheckpoints(name, plan); err != nil {
		_ = os.Remove(name)
		return bad(err)
	}
	to.name = c.name
	err = platform.OnLoss(func() error { return to.takeAll(c) })
	if err == nil {
		err = to.shared.Sync()
	}
	for i := 0; i < len(to.refused) && err == nil; i++ {
		if to.refused[i] != nil {
			err = c.keepFile()
			break
		}
	}
	if err == nil {
		err = os.Rename(name, c.name)
	}
	if err != nil {
		_, err = bad(errors.Join(err, to.Close(), os.Remove(name)))
		return nil, err
	}
	return to, nil
}

// keepFile gives the file a second name.
func (c *Checkpoints) keepFile() error {
	if err := os.Remove(c.name + ".old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Link(c.name, c.name+".old")
}

// takeAll copies the checkpoints of a file.
func (c *Checkpoints) takeAll(from *Checkpoints) error {
	id, err := from.shared.Identity()
	if err != nil {
		return err
	}
	restarted := from.head().identity != id
	for slot := range from.plan.Slots {
		whole, err := 0, error(nil)
		for half := range 2 {
			if from.entry(slot, half).sequence == 0 {
				continue
			}
			if lost := c.takeImage(from, slot, half, restarted); lost != nil {
				err = lost
			} else {
				whole++
			}
		}
		if whole != 0 || err == nil {
			continue
		}
		if slot >= len(c.refused) {
			c.refused = append(c.refused, make([]error, slot+1-len(c.refused))...)
		}
		c.refused[slot] = err
	}
	return nil
}

// takeImage copies an image. It returns an error, and copies nothing, if the image isn't whole or
// has no room here.
func (c *Checkpoints) takeImage(from *Checkpoints, slot, half int, restarted bool) error {
	if restarted {
		if err := from.isComplete(slot, half); err != nil {
			return err
		}
	}
	e := *from.entry(slot, half)
	bad := func(err error) error {
		return fmt.Errorf("save: checkpoint %d of %s: %w: %w; %[2]s.old has it", slot, c.name, ErrRefused, err)
	}
	if err := from.check(slot, half, e); err != nil {
		return bad(err)
	}
	need := CheckpointPlan{c.plan.Slots, c.plan.Size, max(c.plan.Own, e.own)}
	if slot >= c.plan.Slots {
		need.Slots = slot + 1
	}
	if size := lines(e.text) + lines(e.image); size > lines(c.plan.Size) {
		need.Size = size
	}
	if need != c.plan {
		return bad(fmt.Errorf("the file has CheckpointPlan%+v: raise it to CheckpointPlan%+v or more", c.plan, need))
	}
	ours, text, image := c.parts(slot, half, &e)
	own, theirText, theirImage := from.parts(slot, half, &e)
	copy(ours, own)
	copy(text, theirText)
	copy(image, theirImage)
	*c.entry(slot, half) = e
	return nil
}

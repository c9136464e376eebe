package goheap

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// Ring is the last snapshots of a state: of its parts on the Go heap, and in the ring of the budget
// of what lies there everywhere.
type Ring struct {
	*save.Ring
	state *State
	slots []slot
}

// slot is a place of a ring. Of a snapshot that was read there is but the hash.
type slot struct {
	number     uint64
	held, read bool
	hash       uint64
}

func NewRing(s scope.Scope, count int, st *State) *Ring {
	st.end(s)
	for _, p := range st.parts {
		p.keep(count)
	}
	return &Ring{save.NewRing(s, count, st.State), st, make([]slot, count)}
}

// Size is the bytes of one snapshot.
func (r *Ring) Size() int { return int(r.state.Size()) }

func (r *Ring) Take(number uint64) error {
	if err := r.Ring.Take(number); err != nil {
		return err
	}
	to := r.place(number)
	for _, p := range r.state.parts {
		p.take(to)
	}
	return nil
}

func (r *Ring) Restore(ctx context.Context, number uint64) error {
	if from := r.find(number); from >= 0 {
		if r.slots[from].read {
			return fmt.Errorf("snapshot %d: %w", number, errNoSave)
		}
		for _, p := range r.state.parts {
			p.restore(from)
		}
	}
	return r.Ring.Restore(ctx, number) // which has what is made anew, last
}

func (r *Ring) find(number uint64) int {
	for i := range r.slots {
		if r.slots[i].held && r.slots[i].number == number {
			return i
		}
	}
	return -1
}

// place is where the snapshot of a number lies: in that of its number, else of none, else of the
// lowest.
func (r *Ring) place(number uint64) int {
	at := r.find(number)
	if at < 0 {
		at = 0
		for i, s := range r.slots {
			if a := r.slots[at]; a.held && (!s.held || s.number < a.number) {
				at = i
			}
		}
	}
	r.slots[at] = slot{number: number, held: true}
	return at
}

func (r *Ring) Hash(number uint64) (uint64, error) {
	sum, err := r.Ring.Hash(number)
	if err != nil {
		return 0, err
	}
	at := r.find(number)
	if r.slots[at].read {
		return r.slots[at].hash, nil
	}
	var onHeap uint32
	for _, p := range r.state.parts {
		onHeap = p.hash(at, onHeap)
	}
	return sum*31 + uint64(onHeap), nil
}

// errNoSave is what the Go heap's saves are not good for.
var errNoSave = errors.New("the Go heap's states are in no save but for their hash")

// Write writes what lies in the budget, and the hash of all: enough to compare with.
func (r *Ring) Write(w io.Writer, number uint64) error {
	hash, err := r.Hash(number)
	if err == nil {
		err = r.Ring.Write(w, number)
	}
	if err != nil {
		return err
	}
	return binary.Write(w, binary.LittleEndian, hash)
}

func (r *Ring) Read(rd io.Reader) (number uint64, err error) {
	if number, err = r.Ring.Read(rd); err != nil {
		return 0, err
	}
	at := &r.slots[r.place(number)]
	at.read = true
	return number, binary.Read(rd, binary.LittleEndian, &at.hash)
}

func (*Ring) AppendFile(dst []byte, _ uint64) ([]byte, error)      { return dst, errNoSave }
func (*Ring) Delta(dst []byte, _, _ uint64) ([]byte, error)        { return dst, errNoSave }
func (*Ring) Apply([]byte) (uint64, error)                         { return 0, errNoSave }
func (*Ring) PageHashes(list []uint32, _ uint64) ([]uint32, error) { return list, errNoSave }

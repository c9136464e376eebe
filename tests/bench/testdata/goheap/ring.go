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

// Ring has the last snapshots of a state: copies of its parts on the Go heap, and a save.Ring of
// its part in the budget.
type Ring struct {
	*save.Ring
	state *State
	slots []slot
}

// slot is a place of a ring. A snapshot that was read has only its hash.
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

// Size returns the bytes of one snapshot.
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
	return r.Ring.Restore(ctx, number) // last, because it rebuilds values
}

func (r *Ring) find(number uint64) int {
	for i := range r.slots {
		if r.slots[i].held && r.slots[i].number == number {
			return i
		}
	}
	return -1
}

// place returns the slot for a snapshot's number: the slot with that number, or else an empty slot,
// or else the slot with the lowest number.
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

// errNoSave is the error of saves that need the Go heap's state.
var errNoSave = errors.New("a save has only the hash of the Go heap's state")

// Write writes the state in the budget, and the hash of the whole state, for comparison.
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

package scope

import (
	"github.com/upfront-mem/upfront/arena_c"
)

// tempRoom is what Temp makes sure of.
const tempRoom = 1024

// Temp is the scope of temporaries at the far end of the arena, for what is needed only while something is loaded. It
// is gone when the load returns, or when the scope that first asked for it closes: finalizers of temporaries run before
// those of that scope. s must be the topmost scope.
//
// Both ends share the room between them: the far end takes a piece of it at a time, a quarter of what is free but at
// most 64 KiB, or as much as is asked for. Slices, bytes, pools and files take a new piece when they need one. New and
// Alloc, which are inlined, can't; but each call of Temp makes sure of 1 KiB. So write nodes.New(s.Temp()): a Temp that
// is kept for many a New runs out of its piece.
//
// Bytes that the plan gives to the arena go to the pieces too, a quarter of them while pieces are below 64 KiB: see
// [FullError].
func (s Scope) Temp() Scope {
	row := s.slot.Row()
	far := row.Far()
	if s.slot == far && s.slot.Tag() == s.generation() && row.FarOf != 0 {
		s.ensureTemp()
		return s
	}
	if !s.open() {
		panic(s.misuse("Temp of"))
	}
	if row.FarOf == 0 {
		row.FarOpen()
	}
	t := Scope{far, far.Tag() - key}
	t.ensureTemp()
	return t
}

func (s Scope) ensureTemp() {
	if s.Free() >= tempRoom || !s.canGrow() || s.slot.Row().FarGrow(tempRoom, arena_c.LineSize) != arena_c.OK {
		return // when it can't, what is asked of the scope says full
	}
	if full := s.stack().remembered(s.slot); full != nil && full.What == "piece" {
		s.slot.Refused = 0 // the caller does what the message says
	}
}

// canGrow says whether s is a temporary scope that may take new pieces: live, and not running its finalizers.
func (s Scope) canGrow() bool {
	row := s.slot.Row()
	if s.slot != row.Far() || row.FarOf == 0 || s.slot.Tag() != s.generation() {
		return false
	}
	return !s.stack().notes[row.Slots].closing
}

// growsNow says whether s, which has refused, may take a new piece instead. One that refused on purpose may not: its
// answer is to be no.
func (s Scope) growsNow() bool {
	if _, onPurpose := s.slot.Asked(); onPurpose {
		return false
	}
	return s.canGrow()
}

// growTemp takes a new piece for a temporary scope; false for another scope, or when there is no room.
// before is what the scope remembered before it refused for want of a piece.
func (s Scope) growTemp(size, align, before uint64) bool {
	if !s.growsNow() || s.slot.Row().FarGrow(size, align) != arena_c.OK {
		return false
	}
	s.slot.Refused = before
	return true
}

// CloseTemp closes the temporaries, if there are any: finalizers, then the room. It is for the owner of the arena.
func (st *Stack) CloseTemp() (err error) {
	row := st.row
	if row.FarOf == 0 {
		return nil
	}
	far := row.Far()
	_ = st.err(far) // while it can still say why
	was := st.setClosing(far, true)
	defer func() {
		st.count()
		row.FarClose()
		far.Refused = 0 // what comes from now on is misuse
		st.setClosing(far, was)
	}()
	far.Freeze()
	st.tellLost(far, &err)
	st.unwind(far, 0, &err, false)
	return err
}

package wire

// View is a player's view of a tick, with things in the order of their kinds, then numbers. A
// server keeps the views that it sent, as the client has them after decoding. A client keeps the
// views that it decoded.
type View struct {
	Sequence, Tick uint32 // of the State
	Cursor         uint32 // the server's own: the key of the last new thing
	Epoch, Flags   uint8  // Flags: NotHere
	Early          int8
	_              uint8
	Count          uint16 // of things
	_              uint16
	Self           Self
	Things         [Things]Thing
}

// NotHere is the flag of a view whose player isn't in the room yet. NoInput is the value of Early
// before any input came.
const (
	NotHere = 1
	NoInput = -128
)

// Self is a player's own state.
type Self struct {
	X, Y                       int32 // 16.16
	Heading                    uint16
	Health                     int16
	Caught                     uint32
	Deaths, Exits, Keys, Frogs uint16 // Frogs: in the room
}

// Thing is an object in a view.
type Thing struct {
	Number        uint16
	X, Y          int16 // units
	Kind, Heading uint8
	Since         uint32 // the server's own: the tick in which the client got this value
}

// key returns a number by which things are ordered.
func (t *Thing) key() uint32 { return uint32(t.Kind)<<16 | uint32(t.Number) }

// Shown returns the things of a view. It aliases v.
func (v *View) Shown() []Thing { return v.Things[:min(int(v.Count), Things)] }

// Ring holds the newest views of a session, by sequence.
type Ring struct{ views [Views]View }

// At returns the entry for a sequence's view in the ring, which may hold an older view.
func (r *Ring) At(sequence uint32) *View { return &r.views[sequence%Views] }

// Find returns the view of a sequence, or nil if it is gone.
func (r *Ring) Find(sequence uint32) *View {
	if v := r.At(sequence); sequence != 0 && v.Sequence == sequence {
		return v
	}
	return nil
}

// Base returns the view of the sequence base, on which the State of a sequence builds. It returns
// nil if that view is gone, or is too old for the State.
func (r *Ring) Base(base, sequence uint32) *View {
	if v := r.Find(base); v != nil && v.mayBase(sequence) {
		return v
	}
	return nil
}

// mayBase reports whether the State of a sequence may be a delta of v: whether a client that got
// all States between still has v.
func (v *View) mayBase(sequence uint32) bool {
	age := sequence - v.Sequence
	return v.Sequence != 0 && age > 0 && age < Views
}

// Clear removes all views.
func (r *Ring) Clear() {
	for i := range r.views {
		r.views[i].Sequence = 0
	}
}

package wire

// View is what a player is shown of a tick, in the order of keys: kinds, then numbers. A server has
// those that it sent, as the client has them when it decoded them; a client those that it decoded.
type View struct {
	Sequence, Tick uint32 // of the State
	Cursor         uint32 // the server's own: the key of the new thing that was let in last
	Epoch, Flags   uint8  // Flags: NotHere
	Early          int8
	_              uint8
	Count          uint16 // of things
	_              uint16
	Self           Self
	Things         [Things]Thing
}

// NotHere is the flag of a view whose player isn't in the room yet. NoInput is how early inputs come
// of which there were none.
const (
	NotHere = 1
	NoInput = -128
)

// Self is what a player knows of itself.
type Self struct {
	X, Y                       int32 // 16.16
	Heading                    uint16
	Health                     int16
	Caught                     uint32
	Deaths, Exits, Keys, Frogs uint16 // Frogs: in the room
}

// Thing is something that is shown.
type Thing struct {
	Number        uint16
	X, Y          int16 // units
	Kind, Heading uint8
	Since         uint32 // the server's own: the tick in which the client was given this value
}

// key orders things.
func (t *Thing) key() uint32 { return uint32(t.Kind)<<16 | uint32(t.Number) }

// Shown are the things of a view.
func (v *View) Shown() []Thing { return v.Things[:min(int(v.Count), Things)] }

// Ring is the newest views of a session, by sequence.
type Ring struct{ views [Views]View }

// At is where the view of a sequence lies, or an older one that it takes the place of.
func (r *Ring) At(sequence uint32) *View { return &r.views[sequence%Views] }

// Find is the view of a sequence, or nil when it isn't there.
func (r *Ring) Find(sequence uint32) *View {
	if v := r.At(sequence); sequence != 0 && v.Sequence == sequence {
		return v
	}
	return nil
}

// Base is the view that the State of a sequence may be a delta of, if it is still there and isn't
// where that State's own view will lie.
func (r *Ring) Base(base, sequence uint32) *View {
	if v := r.Find(base); v != nil && v.mayBase(sequence) {
		return v
	}
	return nil
}

// mayBase says whether the State of a sequence may be a delta of v: a client that didn't miss the
// ones between still has it.
func (v *View) mayBase(sequence uint32) bool {
	age := sequence - v.Sequence
	return v.Sequence != 0 && age > 0 && age < Views
}

// Clear forgets all views.
func (r *Ring) Clear() {
	for i := range r.views {
		r.views[i].Sequence = 0
	}
}

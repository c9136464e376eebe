package wire

// AppendState appends to a packet's header, which dst is, what a client needs to come from base (nil:
// nothing) to want, and leaves in want what the client has after it. The packet has at most `most`
// bytes, and what dst has room for. A change that doesn't fit is left for another time: a thing stays
// as it is in base, a new one is absent; whole says whether all fitted. Those go first that the
// client has waited for longest, so nothing waits for ever.
//
// want's things must be in order; its Sequence is the packet's.
func AppendState(dst []byte, most int, want, base *View, early int8, flags uint8) (packet []byte,
	whole bool) {
	panic("not yet")
}

// ParseState decodes a State, a whole packet, into its place in the ring, and gives it. NoBase: it is
// a delta of a view that isn't there; WrongHash: it isn't what the server has.
func ParseState(p []byte, ring *Ring) (*View, Reason) {
	panic("not yet")
}

// Hash is by what a client sees that it has what the server says: the CRC-32 of the view's bytes, as
// PROTOCOL.md has them.
func (v *View) Hash() uint32 {
	panic("not yet")
}

package wire

// Window remembers the newest 64 sequences. It refuses older ones.
type Window struct {
	newest uint32
	_      uint32
	seen   uint64 // bit i: newest - i
}

// WindowAfter returns a Window that refuses all sequences up to newest.
func WindowAfter(newest uint32) Window { return Window{newest: newest, seen: ^uint64(0)} }

// Take reports whether a sequence is new, and remembers it. Call it only for a packet with a valid
// MAC, since a forged packet would move the window.
func (w *Window) Take(sequence uint32) bool {
	if sequence == 0 {
		return false
	}
	if sequence > w.newest {
		w.seen = w.seen<<(sequence-w.newest) | 1
		w.newest = sequence
		return true
	}
	bit := uint64(1) << (w.newest - sequence)
	if bit == 0 || w.seen&bit != 0 {
		return false
	}
	w.seen |= bit
	return true
}

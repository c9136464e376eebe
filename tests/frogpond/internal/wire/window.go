package wire

// Window knows which sequences came: of the newest 64 each, and of older ones that they are too old.
type Window struct {
	newest uint32
	_      uint32
	seen   uint64 // bit i: newest - i
}

// Take says whether a sequence is new, and remembers it. Only a packet whose MAC is right may be
// asked about: else a forged one would move the window.
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

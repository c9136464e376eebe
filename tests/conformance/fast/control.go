package fast

// Barrier is the control: storing a Go pointer has a write barrier, also when inlined.
func Barrier(to **Frog, x *Frog) { store(to, x) }

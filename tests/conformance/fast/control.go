package fast

// Barrier is the control: storing a Go pointer does cost a write barrier, inlined too, and the test must see it.
func Barrier(to **Frog, x *Frog) { store(to, x) }

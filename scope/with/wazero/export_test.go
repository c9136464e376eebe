package wazero

// Noted is how many instances the guests know, with those that are closed.
func (g *Guests) Noted() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.open)
}

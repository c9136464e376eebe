package wazero

// Noted returns how many instances the guests note, closed ones included.
func (g *Guests) Noted() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.open)
}

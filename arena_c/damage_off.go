//go:build !memdebug

package arena_c

// raiseDamage is for memdebug builds: others can't tell damage.
func raiseDamage() {}

// Damage is empty: only memdebug builds can tell.
func (m *Map) Damage() string { return "" }

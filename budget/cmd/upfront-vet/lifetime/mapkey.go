package lifetime

// mapKeys reports memory that becomes a key of a map that outlives it, or of a map with an unknown
// lifetime.
func (f *flow) mapKeys() {
	f.sinks(func(s sink) {
		if s.how != keyed {
			return
		}
		for e := range f.carried(s.what) {
			if e.is(allocated) && f.keepsKey(s, e) {
				f.report("mapkey", s.at.Pos(), e, "it becomes a key of a map that may outlive it; "+
					"use strings.Clone, an arena.Inline, or a container.StringMap, which copies its keys")
			}
		}
	})
}

func (f *flow) keepsKey(s sink, e elem) bool {
	fn := f.end(e.scope())
	if len(s.where[""]) == 0 {
		return true
	}
	for to := range s.where[""] {
		if kind := to.kind(); kind == given || kind == cell && fn != nil && f.outside(to, e.scope(), fn) != "" {
			return true
		}
	}
	return false
}

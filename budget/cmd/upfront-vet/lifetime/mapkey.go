package lifetime

// mapKeys reports memory that becomes a key of a map that outlives it, or that lives no one knows how long.
func (f *flow) mapKeys() {
	f.sinks(func(s sink) {
		if s.how != keyed {
			return
		}
		for e := range f.carried(s.what) {
			if e.kind == memory && f.keepsKey(s, e) {
				f.p.report("mapkey", s.at.Pos(), "%s; it becomes a key of a map, which compares what lies there later; "+
					"use strings.Clone, an arena.Inline, or a container.StringMap, which copies its keys", f.story(e))
			}
		}
	})
}

func (f *flow) keepsKey(s sink, e elem) bool {
	fn := f.end(e.from)
	if len(s.where[""]) == 0 {
		return true
	}
	for to := range s.where[""] {
		switch {
		case to.kind == given:
			return true
		case to.kind == cell && fn != nil && f.outside(to, e.from, fn) != "":
			return true
		}
	}
	return false
}

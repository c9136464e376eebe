package scope

import (
	"cmp"
	"slices"

	"github.com/upfront-mem/upfront/arena_c"
)

// CountNames begins to keep the peaks of labels, and if scopes, to count what scopes hold, by name: then Close takes its
// long way. pre: no scope is open. What is counted already goes on.
func (st *Stack) CountNames(scopes bool) {
	if st.labels.ever.lines == nil {
		st.labels.ever.lines = make([]Usage, 0, st.Names+1)
	}
	if scopes && st.names.lines == nil {
		st.names.lines = make([]Usage, 0, st.Names+1)
		st.h.Odd |= oddNames
	}
}

// lineOf is the line of a name, a new one if need be.
func (st *Stack) lineOf(u *usages, name string) int {
	if i := slices.IndexFunc(u.lines, func(line Usage) bool { return line.Name == name }); i >= 0 {
		return i
	}
	switch cap(u.lines) - len(u.lines) {
	case 0:
	case 1:
		u.lines = append(u.lines, Usage{Name: othersName})
	default:
		u.lines = append(u.lines, Usage{Name: st.keep(name)})
	}
	return len(u.lines) - 1
}

// count looks at what every name holds. It is called before anything goes: what a scope has only grows
// until then, so no peak is missed.
func (st *Stack) count() {
	if st.names.lines != nil {
		st.countScopes()
	}
	st.labels.settle()
	if u := &st.labels.ever; u.lines != nil && len(st.labels.lines) != 0 {
		u.empty()
		for i := range st.labels.lines {
			a := &st.labels.lines[i]
			u.add(a.peak, a.bytes, 0)
		}
		u.raise()
	}
}

func (st *Stack) countScopes() {
	h, u := st.h, &st.names
	temp := -1
	if st.row.Temp.Depth != 0 {
		temp = st.lineOf(u, tempName)
		u.lines[temp].Bytes, u.lines[temp].Objects = 0, 0
	}
	for i := uint64(1); i <= h.Depth; i++ { // only the lines of what is open: there may be many others
		line := &u.lines[st.lineAt(i)]
		line.Bytes, line.Objects = 0, 0
	}
	for i := uint64(1); i <= h.Depth; i++ {
		u.add(st.lineAt(i), h.Bytes(i), h.Record(i).Count/arena_c.Object)
	}
	if temp >= 0 {
		u.add(temp, st.row.End-h.Limit, 0)
		u.lines[temp].raise()
	}
	for i := uint64(1); i <= h.Depth; i++ {
		u.lines[st.lineAt(i)].raise()
	}
}

// lineAt is the line of the open scope at a depth, counted from 1: that of the last scope in the same place, most often.
func (st *Stack) lineAt(depth uint64) int {
	n, name := &st.notes[depth], st.nameOf(st.h, depth)
	if !st.names.has(n.line, name) {
		n.line = st.lineOf(&st.names, name)
	}
	return n.line
}

// gone counts what leaves the scope at a depth, where scopes are counted.
func (st *Stack) gone(depth, bytes, objects uint64) {
	if st.names.lines != nil {
		st.names.gone(st.lineAt(depth), bytes, objects)
	}
}

// AppendUsage adds what scopes hold and held, by name, in the order in which the names first came; nothing where they
// aren't counted. And what labels hold, by name, then what others held once. What a failed constructor took back counts
// for the peak. UsageLines is the room that they need.
func (st *Stack) AppendUsage(scopes, labels []Usage) (allScopes, allLabels []Usage) {
	st.names.empty() // what is closed holds nothing
	st.count()
	for _, line := range st.names.lines {
		scopes = append(scopes, line.all())
	}
	return scopes, st.appendLabels(labels)
}

// appendLabels adds those that are live, then those of the table that aren't. A live one may have no line of its own.
func (st *Stack) appendLabels(list []Usage) []Usage {
	first := len(list)
	for _, a := range st.labels.lines {
		u := find(list[first:], a.name)
		if u == nil {
			list = append(list, Usage{Name: a.name})
			u = &list[len(list)-1]
		}
		u.Bytes += a.bytes
		u.raise()
	}
	live := len(list)
	for _, line := range st.labels.ever.lines {
		if u := find(list[first:live], line.Name); u != nil {
			u.Peak = max(u.Peak, line.Peak)
			u.Allocated = line.Allocated + u.Bytes
		} else if line.Peak != 0 {
			list = append(list, Usage{Name: line.Name, Peak: line.Peak, Allocated: line.Allocated})
		}
	}
	return list
}

// UsageLines is how many lines AppendUsage adds at most.
func (st *Stack) UsageLines() (scopes, labels int) {
	if st.labels.ever.lines == nil {
		return 0, 0
	}
	return cap(st.names.lines), cap(st.labels.lines) + cap(st.labels.ever.lines)
}

// bytesOf is what the scope at a depth holds. A Builder's values lie behind the cursor: it is asked
// when they leave no room.
func (st *Stack) bytesOf(h *arena_c.Scopes, depth uint64) uint64 {
	if r := h.Record(depth); depth == h.Depth && r.Edge != 0 {
		return h.Limit - r.Mark - (h.Limit-r.Limit)%r.Edge
	}
	return h.Bytes(depth)
}

// holders are the three that hold most of the arena: labels, what the open scopes hold beside them,
// and temporaries.
func (st *Stack) holders() (top []Usage) {
	h := st.h
	st.labels.settle()
	for _, a := range st.labels.lines {
		top = append(top, Usage{Name: a.name, Bytes: a.bytes})
	}
	for i := uint64(1); i <= h.Depth; i++ {
		u := Usage{Name: st.nameOf(h, i), Bytes: st.bytesOf(h, i), Objects: h.Record(i).Count / arena_c.Object}
		for _, a := range st.labels.lines {
			if a.depth == i {
				u.Bytes -= a.bytes
			}
		}
		top = append(top, u)
	}
	top = append(top, Usage{Name: tempName, Bytes: st.row.End - h.Limit})
	top = slices.DeleteFunc(top, func(u Usage) bool { return u.Bytes-1 >= arena_c.OffsetMax })
	slices.SortStableFunc(top, func(a, b Usage) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return top[:min(3, len(top))]
}

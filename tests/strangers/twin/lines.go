package twin

import (
	"cmp"
	"slices"

	"github.com/upfront-mem/upfront/tests/strangers/work"
)

type group struct {
	key   string
	total int64
	count uint32
}

// table has the groups in the order in which their keys came first.
type table struct {
	groups []group
	byKey  map[string]int32 // indices into groups
}

// Lines plays the program lines. A key is made a string once, for both the map
// and the list; a line that isn't the first of its group allocates nothing.
func Lines(m *work.Meter) (uint64, error) {
	var (
		lines       work.Lines
		users, tags table
		r           work.Record
		sum         work.Sum
	)
	users.byKey = map[string]int32{}
	tags.byKey = map[string]int32{}
	m.Ready()
	for block := lines.Next(); block != nil; block = lines.Next() {
		m.Start()
		for len(block) > 0 {
			block = r.Scan(block)
			users.add(r.User, r.Amount)
			for _, tag := range r.Tags() {
				tags.add(tag, r.Amount)
			}
		}
		m.Stop()
	}
	users.finish(&sum)
	tags.finish(&sum)
	return uint64(sum), nil
}

func (t *table) add(key []byte, amount int64) {
	at, known := t.byKey[string(key)] // allocates no string
	if !known {
		at = int32(len(t.groups))
		name := string(key)
		t.byKey[name] = at
		t.groups = append(t.groups, group{key: name})
	}
	g := &t.groups[at]
	g.total += amount
	g.count++
}

// finish sorts the groups and adds the printed top, and all rows, to sum. The map's indices are
// wrong from then on.
func (t *table) finish(sum *work.Sum) {
	slices.SortFunc(t.groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.key, b.key))
	})
	var page []byte
	for _, g := range t.groups[:min(work.Top, len(t.groups))] {
		page = work.AppendRow(page, []byte(g.key), g.total, g.count)
	}
	sum.Bytes(page)
	for i := range t.groups {
		g := &t.groups[i]
		sum.Bytes([]byte(g.key))
		sum.Add(uint64(g.total))
		sum.Add(uint64(g.count))
	}
}

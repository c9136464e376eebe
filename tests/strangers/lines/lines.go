// Package lines is the program lines with its memory in a budget. Both tables are in a region, and
// the sorted rows are on scratch.
package lines

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"slices"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
	"github.com/upfront-mem/upfront/tests/strangers/work"
)

// rowSize is the most bytes of a printed row: key, total and count, each with a space or a line
// end.
const rowSize = work.KeySize + 20 + 10 + 3

// planJSON is the plan: the need that budget.Measure measured, and a little to spare.
//
//go:embed plan.json
var planJSON []byte

type (
	group struct {
		Total int64
		Count uint32
	}
	row struct {
		group
		Key arena.Inline[[work.KeySize]byte]
	}
)

var (
	groups = scope.Plain[group]()
	rows   = scope.Plain[row]()
)

// table has the groups of one field of the lines, by key.
type table struct{ groups container.StringMap[group] }

func (t *table) add(key []byte, amount int64) error {
	if g := t.groups.GetBytes(key); g != nil {
		g.Total += amount
		g.Count++
		return nil
	}
	return t.groups.SetBytes(key, group{Total: amount, Count: 1})
}

// sorted returns the groups as a list in s, in the order of printing.
func (t *table) sorted(s scope.Scope) ([]row, error) {
	list := rows.SliceCap(s, 0, t.groups.Len())
	for key, g := range t.groups.All() {
		r := row{group: *g}
		if !r.Key.Set(key) {
			return nil, container.ErrLongKey
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b row) int {
		if a.Total != b.Total {
			return cmp.Compare(b.Total, a.Total)
		}
		return bytes.Compare(a.Key.Bytes(), b.Key.Bytes())
	})
	return list, nil
}

// print adds the table to the sum: its first rows as a text, then all groups.
func (t *table) print(s scope.Scope, sum *work.Sum) error {
	list, err := t.sorted(s)
	if err != nil {
		return err
	}
	text := s.Bytes(work.Top * rowSize)[:0]
	for i := range list[:min(work.Top, len(list))] {
		r := &list[i]
		text = work.AppendRow(text, r.Key.Bytes(), r.Total, r.Count)
	}
	sum.Bytes(text)
	for i := range list {
		r := &list[i]
		sum.Bytes(r.Key.Bytes())
		sum.Add(uint64(r.Total))
		sum.Add(uint64(r.Count))
	}
	return nil
}

type tables struct{ users, tags table }

func load(s scope.Scope) (*tables, error) {
	return &tables{
		users: table{container.NewStringMap(s, groups, work.Users, work.KeySize)},
		tags:  table{container.NewStringMap(s, groups, work.Tags, work.KeySize)},
	}, nil
}

func (t *tables) group(block []byte) error {
	var r work.Record
	for len(block) > 0 {
		block = r.Scan(block)
		if err := t.users.add(r.User, r.Amount); err != nil {
			return err
		}
		for _, tag := range r.Tags() {
			if err := t.tags.add(tag, r.Amount); err != nil {
				return err
			}
		}
	}
	return nil
}

// Play plays the program with its memory in a budget.
func Play(m *work.Meter) (uint64, error) {
	plan, err := budget.ParsePlan(planJSON)
	if err != nil {
		return 0, err
	}
	b, err := budget.Open(plan)
	if err != nil {
		return 0, err
	}
	sum, err := play(b, m)
	return sum, errors.Join(err, b.Close())
}

func play(b *budget.Budget, m *work.Meter) (uint64, error) {
	loaded, err := budget.Load(context.Background(), b.Region("tables"), load)
	if err != nil {
		return 0, err
	}
	t := loaded.Get()
	var lines work.Lines
	m.Ready()
	for block := lines.Next(); block != nil; block = lines.Next() {
		m.Start()
		if err := t.group(block); err != nil {
			return 0, err
		}
		m.Stop()
	}
	var sum work.Sum
	for _, table := range []*table{&t.users, &t.tags} {
		err := b.Scratch(0, 0).Do("print", func(s scope.Scope) error { return table.print(s, &sum) })
		if err != nil {
			return 0, err
		}
	}
	return uint64(sum), nil
}

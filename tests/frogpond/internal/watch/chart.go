package watch

import (
	"context"
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// plan is the budget of who watches: the tables of the files, and one map. It is what Freedoom's
// two files and the largest of their maps need, and some more.
var plan = budget.Plan{
	Name: "watch",
	Regions: []budget.RegionPlan{
		{Name: "init", Size: 448 * budget.KiB},
		{Name: "level", Size: 1536 * budget.KiB},
	},
	Pages: budget.Pages{Prefault: budget.Off},
}

// Charts are the maps that there are, and the one that is shown.
type Charts struct {
	budget *budget.Budget
	maps   []doom.Map
	level  *doom.Level
	ranks  []rank // of the level's lines, as the file has them
}

// OpenCharts opens the files in a budget of its own; the seed is that of the built-in maps.
func OpenCharts(ctx context.Context, wads []string, seed uint64) (*Charts, error) {
	b, err := budget.Open(plan)
	if err != nil {
		return nil, err
	}
	c := &Charts{budget: b}
	library, err := budget.Load(ctx, b.Region("init"), func(s scope.Scope) (*doom.Library, error) {
		return doom.OpenLibrary(s, wads, seed)
	})
	if err == nil {
		c.maps, err = library.Get().Maps()
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return c, nil
}

// Close gives everything back.
func (c *Charts) Close() error { return c.budget.Close() }

// Load loads a map in the place of the last one. When it can't, there is none.
func (c *Charts) Load(ctx context.Context, name string) error {
	c.level, c.ranks = nil, nil
	for i := range c.maps {
		if c.maps[i].Name != name {
			continue
		}
		region := c.budget.Region("level")
		level, err := budget.Load(ctx, region, func(s scope.Scope) (*doom.Level, error) {
			l, err := c.maps[i].Load(s, region.Base())
			return &l, err
		})
		if err != nil {
			return err
		}
		c.level = level.Get()
		c.rankLines()
		return nil
	}
	return fmt.Errorf("the server plays %s, which is not in the files here", name)
}

// rankLines says of each line what it is. A door is a line at a sector that some line opens or
// closes.
func (c *Charts) rankLines() {
	doors := c.doors()
	c.ranks = make([]rank, len(c.level.Lines))
	for i := range c.ranks {
		n := &c.level.Lines[i]
		switch {
		case n.Back.IsNil():
			c.ranks[i] = wall
		case doors[c.front(n)] || doors[c.back(n)]:
			c.ranks[i] = door
		default:
			c.ranks[i] = step
		}
	}
}

// front and back are the numbers of the sectors at a line; back is of who has both.
func (c *Charts) front(n *doom.Line) uint16 { return n.Front.Get(c.level.Base).Number }
func (c *Charts) back(n *doom.Line) uint16  { return n.Back.Get(c.level.Base).Number }

// doors says of each sector whether it is one.
func (c *Charts) doors() []bool {
	l := c.level
	is := make([]bool, len(l.Sectors))
	for i := range l.Lines {
		n := &l.Lines[i]
		special := doom.SpecialOf(n.Special)
		switch special.Action {
		case doom.OpenDoor, doom.CloseDoor, doom.RaiseDoor, doom.ReopenDoor:
		default:
			continue
		}
		if special.Trigger == doom.Pushed {
			if !n.Back.IsNil() {
				is[c.back(n)] = true
			}
			continue
		}
		for k := range l.Outlines {
			is[k] = is[k] || n.Tag != 0 && l.Outlines[k].Tag == n.Tag
		}
	}
	return is
}

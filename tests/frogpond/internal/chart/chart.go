// Package chart makes drawings of maps: the lines of a map, each with its kind. The package loads
// maps into a budget of its own, so both a client and a server during play can use it:
//
//	charts, err := chart.Open(ctx, []string{doom.Builtin}, seed)
//	c, err := charts.Load(ctx, "MAP01")
package chart

import (
	"context"
	"fmt"
	"slices"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// Chart is the drawing of a map, in map units; north is up. It is on the Go heap, and never
// changes.
type Chart struct {
	Name       string
	MinX, MinY int16
	MaxX, MaxY int16
	Lines      []Line
	Sectors    []Sector // as loaded, by number
}

// Line is a line from X, Y to X2, Y2. Front and Back are the sectors on its sides; Back is None for
// a wall.
type Line struct {
	X, Y, X2, Y2 int16
	Kind         Kind
	Front, Back  int
}

// None stands for a missing sector.
const None = -1

// Sector is the heights of a sector.
type Sector struct{ Floor, Ceiling int16 }

// Kind is the kind of a line. If several kinds apply, it is the last of them.
type Kind uint8

// The kinds of lines.
const (
	Plain   Kind = iota // both sides have the same heights
	Ceiling             // the ceiling changes
	Step                // the floor changes
	Wall                // one side only: no body passes
	Special             // a switch, an exit, a teleporter
	Door                // a sector next to it opens and closes
)

// plan has space for more than Freedoom's largest map.
var plan = budget.Plan{
	Name: "charts",
	Regions: []budget.RegionPlan{
		{Name: "init", Size: 448 * budget.KiB, Note: "the tables of the files, if they are opened here"},
		{Name: "level", Size: 1536 * budget.KiB},
	},
	Pages: budget.Pages{Prefault: budget.Off},
}

// Charts makes the charts of a list of maps. It is for one goroutine at a time.
type Charts struct {
	budget *budget.Budget
	maps   []doom.Map
}

// Open opens the files in a budget of its own. The seed is for the built-in maps. Close frees the
// budget.
func Open(ctx context.Context, wads []string, seed uint64) (*Charts, error) {
	c, err := Of(nil)
	if err != nil {
		return nil, err
	}
	library, err := budget.Load(ctx, c.budget.Region("init"), func(s scope.Scope) (*doom.Library, error) {
		return doom.OpenLibrary(s, wads, seed)
	})
	if err == nil {
		c.maps, err = library.Get().Maps()
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Of makes charts of maps from open files; the caller keeps the files open until Close.
func Of(maps []doom.Map) (*Charts, error) {
	b, err := budget.Open(plan)
	if err != nil {
		return nil, err
	}
	return &Charts{budget: b, maps: maps}, nil
}

// Close frees the budget. Charts that were loaded stay valid.
func (c *Charts) Close() error { return c.budget.Close() }

// Names returns the names of all maps.
func (c *Charts) Names() (list []string) {
	for i := range c.maps {
		list = append(list, c.maps[i].Name)
	}
	return list
}

// Load makes the chart of a map. It fails if the map isn't in the files.
func (c *Charts) Load(ctx context.Context, name string) (*Chart, error) {
	at := slices.IndexFunc(c.maps, func(m doom.Map) bool { return m.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("the server plays %s, which is not in the files here", name)
	}
	region := c.budget.Region("level")
	level, err := budget.Load(ctx, region, func(s scope.Scope) (*doom.Level, error) {
		l, err := c.maps[at].Load(s, region.Base())
		return &l, err
	})
	if err != nil {
		return nil, err
	}
	chart := draw(level.Get())
	return chart, region.Rewind(ctx)
}

func draw(l *doom.Level) *Chart {
	unit := func(fixed int32) int16 { return int16(fixed >> doom.UnitBits) }
	c := &Chart{Name: l.Name, MinX: unit(l.Min.X), MinY: unit(l.Min.Y), MaxX: unit(l.Max.X), MaxY: unit(l.Max.Y)}
	for i := range l.Sectors {
		c.Sectors = append(c.Sectors, Sector{unit(l.Sectors[i].Floor), unit(l.Sectors[i].Ceiling)})
	}
	isDoor := doors(l)
	for i := range l.Lines {
		n := &l.Lines[i]
		line := Line{X: int16(n.X), Y: int16(n.Y), X2: int16(n.X + n.DX), Y2: int16(n.Y + n.DY), Back: None,
			Front: int(n.Front.Get(l.Base).Number)}
		if !n.Back.IsNil() {
			line.Back = int(n.Back.Get(l.Base).Number)
		}
		line.Kind = c.kindOf(line, n.Special, isDoor)
		c.Lines = append(c.Lines, line)
	}
	return c
}

func (c *Chart) kindOf(n Line, special uint16, isDoor []bool) Kind {
	switch {
	case n.Back != None && (isDoor[n.Front] || isDoor[n.Back]):
		return Door
	case works(doom.SpecialOf(special)):
		return Special
	case n.Back == None:
		return Wall
	case c.Sectors[n.Front].Floor != c.Sectors[n.Back].Floor:
		return Step
	case c.Sectors[n.Front].Ceiling != c.Sectors[n.Back].Ceiling:
		return Ceiling
	}
	return Plain
}

// works reports whether a body can trigger the special. An effect that works by itself doesn't
// count.
func works(s doom.Special) bool { return s.Action != doom.NoAction && s.Trigger != doom.Always }

// doors reports for each sector whether some line opens or closes it.
func doors(l *doom.Level) []bool {
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
				is[n.Back.Get(l.Base).Number] = true
			}
			continue
		}
		for k := range l.Outlines {
			is[k] = is[k] || n.Tag != 0 && l.Outlines[k].Tag == n.Tag
		}
	}
	return is
}

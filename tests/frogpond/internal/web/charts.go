package web

import (
	"context"
	"slices"
	"sync"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/chart"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// charts are the requested charts, each with its JSON. The number of maps bounds them.
type charts struct {
	maps []doom.Map

	mu     sync.Mutex
	from   *chart.Charts // opened by the first request
	known  map[string]*charted
	closed bool
}

type charted struct {
	*chart.Chart
	text []byte
}

func (c *charts) has(name string) bool {
	return slices.ContainsFunc(c.maps, func(m doom.Map) bool { return m.Name == name })
}

// get returns the chart of a map. The first time it loads the chart, which takes milliseconds;
// other requests wait meanwhile.
func (c *charts) get(name string) (*charted, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.known[name]; known != nil {
		return known, nil
	}
	if err := c.open(); err != nil {
		return nil, err
	}
	drawn, err := c.from.Load(context.Background(), name)
	if err != nil {
		return nil, err
	}
	c.known[name] = &charted{Chart: drawn, text: encode(formOf(drawn))}
	return c.known[name], nil
}

func (c *charts) open() (err error) {
	if c.closed {
		return errClosed
	}
	if c.from == nil {
		c.from, err = chart.Of(c.maps)
		c.known = map[string]*charted{}
	}
	return err
}

func (c *charts) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.from == nil {
		return nil
	}
	from := c.from
	c.from = nil
	return from.Close()
}

// form is a chart for the page's script. It has lists of numbers, because a chart has thousands of
// lines.
type form struct {
	Map     string     `json:"map"`
	Box     [4]int16   `json:"box"`   // from x, y to x, y
	Lines   [][7]int   `json:"lines"` // from x, y to x, y; kind, front, back
	Sectors [][2]int16 `json:"sectors"`
}

func formOf(c *chart.Chart) form {
	f := form{Map: c.Name, Box: [4]int16{c.MinX, c.MinY, c.MaxX, c.MaxY}}
	for _, n := range c.Lines {
		f.Lines = append(f.Lines,
			[7]int{int(n.X), int(n.Y), int(n.X2), int(n.Y2), int(n.Kind), n.Front, n.Back})
	}
	for _, s := range c.Sectors {
		f.Sectors = append(f.Sectors, [2]int16{s.Floor, s.Ceiling})
	}
	return f
}

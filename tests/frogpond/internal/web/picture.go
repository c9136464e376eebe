package web

import (
	"fmt"
	"html"
	"strings"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/chart"
)

// classes are the style sheet's names of lines. The script reads the colours from the style sheet,
// in the same order.
var classes = [...]string{chart.Plain: "plain", chart.Ceiling: "ceiling", chart.Step: "step",
	chart.Wall: "wall", chart.Special: "special", chart.Door: "door"}

// path has all lines of a class, as SVG's path data.
type path struct{ class, d string }

// margin is the space around the map, in units.
const margin = 64

// picture draws a scene as SVG in map units. The sign of each y is changed, because SVG's y grows
// downward. The size of bodies depends on the map's, so that they are visible on each map.
func picture(c *chart.Chart, s *Scene) string {
	var to strings.Builder
	width, height := int(c.MaxX)-int(c.MinX)+2*margin, int(c.MaxY)-int(c.MinY)+2*margin
	size := max(1, max(width, height)/250)
	fmt.Fprintf(&to,
		`<svg id="still" class="automap" viewBox="%d %d %d %d" role="img" aria-label="Map %s: %d players, %d frogs, %d sectors moved">`+"\n",
		int(c.MinX)-margin, -int(c.MaxY)-margin, width, height, html.EscapeString(s.Map), len(s.Players), len(s.Frogs),
		len(s.Sectors))
	for _, p := range lines(c, s) {
		fmt.Fprintf(&to, `<path class="line %s" d="%s"/>`+"\n", p.class, p.d)
	}
	for _, f := range s.Frogs {
		fmt.Fprintf(&to, `<circle class="frog" cx="%d" cy="%d" r="%d"/>`+"\n", f[0], -int(f[1]), size)
	}
	for _, p := range s.Players {
		fmt.Fprintf(&to, `<g transform="translate(%d %d) scale(%d)"><path class="player" transform="rotate(%s)" `+
			`d="M3 0L-2 1.8L-1 0L-2 -1.8Z"/><text class="player" x="3" y="-2" font-size="3.5">%d</text></g>`+"\n",
			p.X, -int(p.Y), size, turn(p.Heading), p.Number)
	}
	to.WriteString("</svg>\n")
	return to.String()
}

// turn returns a heading in SVG's degrees, which go clockwise.
func turn(heading uint8) string { return fmt.Sprintf("%.1f", -22.5*float64(heading&15)) }

// lines returns the lines of a chart by class, with the sectors as they are now.
func lines(c *chart.Chart, s *Scene) (list []path) {
	now := make([]chart.Sector, len(c.Sectors))
	copy(now, c.Sectors)
	moved := make([]bool, len(c.Sectors))
	for _, m := range s.Sectors {
		if at := int(m[0]); at >= 0 && at < len(now) {
			now[at], moved[at] = chart.Sector{Floor: m[1], Ceiling: m[2]}, true
		}
	}
	order := []string{"plain", "ceiling", "step", "wall", "moved", "special", "ajar", "door"}
	texts := map[string]*strings.Builder{}
	for _, class := range order {
		texts[class] = &strings.Builder{}
	}
	for _, n := range c.Lines {
		fmt.Fprintf(texts[classOf(n, now, moved)], "M%d %dL%d %d", n.X, -int(n.Y), n.X2, -int(n.Y2))
	}
	for _, class := range order {
		if texts[class].Len() > 0 {
			list = append(list, path{class, texts[class].String()})
		}
	}
	return list
}

// classOf returns the class of a line now. A door is open if there is a gap between its sides.
func classOf(n chart.Line, now []chart.Sector, moved []bool) string {
	switch {
	case n.Kind == chart.Door && min(now[n.Front].Ceiling, now[n.Back].Ceiling) >
		max(now[n.Front].Floor, now[n.Back].Floor):
		return "ajar"
	case n.Kind == chart.Door:
		return "door"
	case n.Back != chart.None && (moved[n.Front] || moved[n.Back]):
		return "moved"
	}
	return classes[n.Kind]
}

// Package watch shows a room in a terminal: the lines of its map, its players and frogs. Run
// watches a server's room. Picture draws one moment.
package watch

import (
	"fmt"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/chart"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// Picture draws a map, and the players and frogs of a view.
type Picture struct {
	ASCII, Coloured bool

	canvas  canvas
	chart   *chart.Chart
	view    *wire.View
	divisor int // units of a dot
	left    int // dots left of the map
	top     int
	moved   map[uint16]bool // sectors that have moved since the load
}

// Draw appends a picture of columns by rows characters to text, and returns it. The last row is
// say. The view and the chart may be nil.
func (p *Picture) Draw(text []byte, columns, rows int, c *chart.Chart, v *wire.View,
	say string) []byte {
	p.canvas.ascii, p.canvas.coloured, p.chart, p.view = p.ASCII, p.Coloured, c, v
	p.canvas.resize(max(columns, 8), max(rows-1, 4))
	p.canvas.clear()
	if c != nil {
		p.fit()
		p.findMoved()
		p.lines()
		if v != nil {
			p.things()
		}
	}
	text = p.canvas.appendTo(text)
	if letters := []rune(say); len(letters) > columns {
		say = string(letters[:columns])
	}
	text = append(text, say...)
	if p.Coloured {
		text = append(text, "\x1b[K"...)
	}
	return text
}

// fit chooses a scale at which the map fits, and centres it.
func (p *Picture) fit() {
	width, height := int(p.chart.MaxX)-int(p.chart.MinX), int(p.chart.MaxY)-int(p.chart.MinY)
	columns, rows := p.canvas.columns*dotColumns-1, p.canvas.rows*dotRows-1
	p.divisor = max(1, (width+columns-1)/columns, (height+rows-1)/rows)
	p.left = (columns - width/p.divisor) / 2
	p.top = (rows - height/p.divisor) / 2
}

// dot returns the dot of a place in units; north is up.
func (p *Picture) dot(x, y int) (column, row int) {
	return p.left + (x-int(p.chart.MinX))/p.divisor, p.top + (int(p.chart.MaxY)-y)/p.divisor
}

func (p *Picture) findMoved() {
	if p.moved == nil {
		p.moved = map[uint16]bool{}
	}
	clear(p.moved)
	if p.view == nil {
		return
	}
	for _, t := range p.view.Shown() {
		if t.Kind == game.SeenSector {
			p.moved[t.Number] = true
		}
	}
}

func (p *Picture) lines() {
	for i := range p.chart.Lines {
		n := &p.chart.Lines[i]
		x, y := p.dot(int(n.X), int(n.Y))
		x2, y2 := p.dot(int(n.X2), int(n.Y2))
		p.canvas.line(x, y, x2, y2, p.rank(n))
	}
}

func (p *Picture) rank(n *chart.Line) rank {
	switch {
	case n.Back == chart.None:
		return wall
	case len(p.moved) > 0 && (p.moved[uint16(n.Front)] || p.moved[uint16(n.Back)]):
		return moved
	case n.Kind == chart.Door:
		return door
	}
	return step
}

// The headings, by eighths of the compass.
var (
	arrows      = [8]rune{'→', '↗', '↑', '↖', '←', '↙', '↓', '↘'}
	asciiArrows = [8]rune{'>', '/', '^', '\\', '<', '/', 'v', '\\'}
)

// The cell of each heading, relative to the player's cell.
var beside = [8][2]int{{1, 0}, {1, -1}, {0, -1}, {-1, -1}, {-1, 0}, {-1, 1}, {0, 1}, {1, 1}}

func (p *Picture) things() {
	frogLetter, heads := '•', &arrows
	if p.ASCII {
		frogLetter, heads = 'o', &asciiArrows
	}
	for _, t := range p.view.Shown() {
		x, y := p.dot(int(t.X), int(t.Y))
		switch t.Kind {
		case game.SeenFrog:
			p.canvas.put(x, y, frogLetter, frog)
		case game.SeenPlayer:
			eighth := (t.Heading&15 + 1) / 2 % 8
			to := beside[eighth]
			p.canvas.put(x+to[0]*dotColumns, y+to[1]*dotRows, heads[eighth], heading)
			p.canvas.put(x, y, letterOf(t.Number), player)
		}
	}
}

// letterOf returns a player's number as one letter: 0 to 9, then a to z, then *.
func letterOf(number uint16) rune {
	if number < 36 {
		return rune("0123456789abcdefghijklmnopqrstuvwxyz"[number])
	}
	return '*'
}

// Figures returns the counts of a view as text.
func Figures(v *wire.View) string {
	counts := [4]int{}
	for _, t := range v.Shown() {
		counts[t.Kind&3]++
	}
	return fmt.Sprintf("tick %d: %d players, %d frogs of %d, %d sectors moved", v.Tick,
		counts[game.SeenPlayer], counts[game.SeenFrog], v.Self.Frogs, counts[game.SeenSector])
}

package watch

import "unicode/utf8"

// canvas is a picture of characters. A higher rank covers a lower one.
type canvas struct {
	columns, rows int
	ascii         bool
	coloured      bool // with the terminal's colours
	cells         []cell
}

// cell is a character: a letter, or the eight dots of braille, which lines set.
type cell struct {
	letter rune
	dots   uint8
	rank   rank
}

// rank is the kind of a cell's content. A higher rank covers a lower one.
type rank uint8

const (
	empty rank = iota
	step       // a line with a sector on both sides
	wall
	moved // of a sector that has moved since the load
	door
	frog
	heading
	player
)

// A cell of braille is two dots wide and four high; on a terminal the dots are square.
const dotColumns, dotRows = 2, 4

// brailleBits are the bits of a cell's dots, by row and column.
var brailleBits = [dotRows][dotColumns]uint8{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// The characters of lines: in ASCII, and without colours. 0 stands for the dots.
var (
	asciiLines = [...]rune{step: '.', wall: '#', moved: '/', door: '+'}
	plainLines = [...]rune{step: '·', wall: 0, moved: '░', door: '▒'}
)

// colours are the terminal's codes, by rank.
var colours = [...]string{step: "\x1b[0;2m", wall: "\x1b[0m", moved: "\x1b[0;36m",
	door: "\x1b[0;33m", frog: "\x1b[0;32m", heading: "\x1b[0;1;35m", player: "\x1b[0;1;35m"}

const plain = "\x1b[0m"

func (c *canvas) resize(columns, rows int) {
	if columns*rows > cap(c.cells) {
		c.cells = make([]cell, columns*rows)
	}
	c.columns, c.rows, c.cells = columns, rows, c.cells[:columns*rows]
}

func (c *canvas) clear() { clear(c.cells) }

// at returns the cell of a dot, or nil beyond the edges.
func (c *canvas) at(x, y int) *cell {
	if x < 0 || y < 0 || x >= c.columns*dotColumns || y >= c.rows*dotRows {
		return nil
	}
	return &c.cells[y/dotRows*c.columns+x/dotColumns]
}

func (c *canvas) dot(x, y int, r rank) {
	if at := c.at(x, y); at != nil {
		at.dots |= brailleBits[y%dotRows][x%dotColumns]
		at.rank = max(at.rank, r)
	}
}

// line draws a line, both ends included (Bresenham).
func (c *canvas) line(x, y, x2, y2 int, r rank) {
	dx, dy := max(x2-x, x-x2), -max(y2-y, y-y2)
	stepX, stepY := 1, 1
	if x2 < x {
		stepX = -1
	}
	if y2 < y {
		stepY = -1
	}
	for rest := dx + dy; ; {
		c.dot(x, y, r)
		if x == x2 && y == y2 {
			return
		}
		twice := 2 * rest
		if twice >= dy {
			rest, x = rest+dy, x+stepX
		}
		if twice <= dx {
			rest, y = rest+dx, y+stepY
		}
	}
}

// put draws a letter in the cell of a dot.
func (c *canvas) put(x, y int, letter rune, r rank) {
	if at := c.at(x, y); at != nil && at.rank <= r {
		at.letter, at.rank = letter, r
	}
}

// rune returns the character of a cell.
func (c *canvas) rune(at *cell) rune {
	switch {
	case at.letter != 0:
		return at.letter
	case at.dots == 0:
		return ' '
	case c.ascii:
		return asciiLines[at.rank]
	case !c.coloured && plainLines[at.rank] != 0:
		return plainLines[at.rank]
	}
	return 0x2800 + rune(at.dots)
}

// appendTo appends the picture as text.
func (c *canvas) appendTo(text []byte) []byte {
	for row := range c.rows {
		last := empty
		for column := range c.columns {
			at := &c.cells[row*c.columns+column]
			if c.coloured && at.rank != empty && at.rank != last {
				text = append(text, colours[at.rank]...)
				last = at.rank
			}
			text = utf8.AppendRune(text, c.rune(at))
		}
		text = endLine(text, c.coloured)
	}
	return text
}

// endLine appends the end of a line. On a terminal it also clears the rest of the line.
func endLine(text []byte, coloured bool) []byte {
	if coloured {
		text = append(text, plain+"\x1b[K"...)
	}
	return append(text, '\n')
}

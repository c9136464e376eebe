package timeline

// cells holds the samples of all arenas. The arenas' samples of the same ticks are adjacent.
type cells struct {
	samples, arenas int
	most            []uint64
	marks           []uint16
	used            int    // samples in use
	step            uint64 // ticks in a sample
	last            uint64 // ticks in the last sample
	ticks           uint64 // ticks in all
}

func newCells(samples, arenas int) cells {
	n := samples * arenas
	return cells{samples: samples, arenas: arenas, most: make([]uint64, n), marks: make([]uint16, n), step: 1}
}

func (c *cells) tick() (most []uint64, marks []uint16) {
	if c.used == 0 || c.last == c.step {
		c.begin()
	}
	c.last++
	c.ticks++
	return c.sample(c.used - 1)
}

func (c *cells) sample(i int) (most []uint64, marks []uint16) {
	from, to := i*c.arenas, (i+1)*c.arenas
	return c.most[from:to], c.marks[from:to]
}

// begin begins a sample. If halving an odd number left room for more ticks in the last sample, it
// continues that sample.
func (c *cells) begin() {
	if c.used == c.samples {
		c.halve()
		if c.last < c.step {
			return
		}
	}
	c.used++
	c.last = 0
	most, marks := c.sample(c.used - 1)
	clear(most)
	clear(marks)
}

// halve merges each pair of neighbours. Before, all samples are whole. If their number is odd, the
// last becomes half a sample.
func (c *cells) halve() {
	odd := c.used%2 != 0
	for i := range (c.used + 1) / 2 {
		most, marks := c.sample(i)
		left, leftMarks := c.sample(2 * i)
		copy(most, left)
		copy(marks, leftMarks)
		if 2*i+1 < c.used {
			c.join(most, marks, 2*i+1)
		}
	}
	c.used = (c.used + 1) / 2
	c.last = 2 * c.step
	if odd {
		c.last = c.step
	}
	c.step *= 2
}

func (c *cells) join(most []uint64, marks []uint16, from int) {
	right, rightMarks := c.sample(from)
	for k := range most {
		most[k] = max(most[k], right[k])
		marks[k] |= rightMarks[k]
	}
}

func (c *cells) copyTo(to *cells) {
	n := c.used * c.arenas
	copy(to.most, c.most[:n])
	copy(to.marks, c.marks[:n])
	to.used, to.step, to.last, to.ticks = c.used, c.step, c.last, c.ticks
}

// line returns an arena's use and marks in each sample; nil marks if there are none.
func (c *cells) line(arena int) (most []uint64, marks []Mark) {
	most, marks = make([]uint64, c.used), make([]Mark, c.used)
	var all Mark
	for i := range c.used {
		most[i], marks[i] = c.most[i*c.arenas+arena], Mark(c.marks[i*c.arenas+arena])
		all |= marks[i]
	}
	if all == 0 {
		return most, nil
	}
	return most, marks
}

package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/upfront-mem/upfront/budget"
)

// Walk draws every byte of a budget, to scale: what [budget.Budget.Walk] found in the budget of that name. A range that is narrower
// than a pixel is a pixel wide all the same, and has a mark above. Below stand what each kind has, to the byte,
// the largest ranges, and a bar for each arena; siblings that look the same share one, and of many that differ those
// that hold most have one. Ranges that don't cover all are an error, and nothing is written.
func Walk(w io.Writer, name string, ranges []budget.Range) error {
	all, err := walkOf(name, ranges)
	if err != nil {
		return err
	}
	d := walkDrawing{walk: all}
	title := "walk of " + all.name + ": " + sizeText(all.total)
	d.text("title", margin, 320, title)
	d.text("small size", width-margin, 320, exact(all.total)+" bytes in "+many(len(ranges), "range"))
	d.whole()
	below := d.y
	d.kinds()
	bottom := d.y
	d.y = below
	d.largest()
	d.y = max(bottom, d.y)
	d.rows()
	return d.writeTo(w, title, d.description(), d.y+200)
}

type walkDrawing struct {
	picture
	*walk
	y px // of the last line
}

// description is the picture for who can't see it.
func (d *walkDrawing) description() string {
	var list []string
	for kind, size := range d.sums {
		if d.counts[kind] != 0 {
			list = append(list, rangeKinds[kind].name+" "+exact(size))
		}
	}
	return "Bytes: " + strings.Join(list, ", ") + ", all " + exact(d.total)
}

// piece draws a rectangle in the colours of a kind.
func (d *walkDrawing) piece(kind int, class string, x, y, w, h px, text string) {
	switch k := rangeKinds[kind]; {
	case k.class == "hatch":
		d.rect("ground", x, y, w, h)
		class = k.class
	case k.class != "":
		class = k.class
	case kind == freeKind:
		class += " pale"
	}
	d.told(class, x, y, w, h, text)
}

const (
	walkTop    px = 700
	walkHeight px = 480
)

// whole is all ranges side by side; what is narrower than a pixel lies above, one in each column of pixels.
func (d *walkDrawing) whole() {
	at := scale{margin, width - margin, d.total}
	narrow := map[px]budget.Range{}
	slivers, bytes := 0, uint64(0)
	for _, r := range d.ranges {
		from, to := at.x(r.Offset), at.x(r.Offset+r.Size)
		if to-from >= 10 {
			d.piece(kindOf(r.What), classOf(r.Arena), from, walkTop, to-from, walkHeight, rangeTitle(r)+": "+exact(r.Size)+" bytes")
		} else if r.Size != 0 {
			slivers, bytes = slivers+1, bytes+r.Size
			if column := from / 10; r.Size > narrow[column].Size {
				narrow[column] = r
			}
		}
	}
	for column := margin / 10; column < (width-margin)/10; column++ {
		if r, found := narrow[column]; found {
			x := min(at.x(r.Offset), width-margin-10)
			d.piece(kindOf(r.What), classOf(r.Arena), x, walkTop, 10, walkHeight, rangeTitle(r)+": "+exact(r.Size)+" bytes")
			d.rect("point", x, walkTop-70, 10, 50)
		}
	}
	d.names(at)
	d.y = walkTop + walkHeight + 200
	if slivers != 0 {
		d.y += 210
		d.text("small", margin, d.y, fmt.Sprintf("%s narrower than a pixel, %s bytes in all: drawn a pixel wide, with a mark above",
			many(slivers, "range"), exact(bytes)))
	}
}

// names stand below the parts that are wide enough.
func (d *walkDrawing) names(at scale) {
	for ranges := d.ranges; len(ranges) != 0; {
		part := budget.RegionOf(ranges[0].Arena)
		from, to := at.x(ranges[0].Offset), px(0)
		for len(ranges) != 0 && budget.RegionOf(ranges[0].Arena) == part {
			to, ranges = at.x(ranges[0].Offset+ranges[0].Size), ranges[1:]
		}
		if to-from > 50 {
			d.path("line", "M%s %s V%s H%s V%s", from+10, walkTop+walkHeight+20, walkTop+walkHeight+60, to-10, walkTop+walkHeight+20)
		}
		if name := clip(part, nameLetters); part != "" && to-from > long(name) {
			d.text("small middle", (from+to)/2, walkTop+walkHeight+200, name)
		}
	}
}

// kinds says what each kind has. The sum is the budget.
func (d *walkDrawing) kinds() {
	const size, percent = margin + 2800, margin + 3600
	d.y += 400
	d.text("head", margin, d.y, "by kind")
	d.text("small size", size, d.y, "bytes")
	for kind, bytes := range d.sums {
		if d.counts[kind] == 0 {
			continue
		}
		d.y += lineHeight
		d.piece(kind, "region", margin, d.y-110, 120, 120, "")
		d.text("", margin+220, d.y, rangeKinds[kind].name)
		d.text("size", size, d.y, exact(bytes))
		d.text("small size", percent, d.y, share(bytes, d.total))
	}
	d.y += lineHeight
	d.path("grid", "M%s %s H%s", margin, d.y-170, percent)
	d.text("", margin+220, d.y, "all")
	d.text("size", size, d.y, exact(d.total))
}

// largest are the largest ranges, right of the kinds.
func (d *walkDrawing) largest() {
	const left, size, percent = margin + 4200, width - margin - 800, width - margin
	list, others, rest := d.walk.largest()
	d.y += 400
	d.text("head", left, d.y, "largest ranges")
	d.text("small size", size, d.y, "bytes each")
	for _, r := range list {
		d.y += lineHeight
		d.text("", left, d.y, fitting(r.title(), size-left-long(exact(r.Size))-100))
		d.text("size", size, d.y, exact(r.Size))
		d.text("small size", percent, d.y, share(r.Size, d.total))
	}
	if others != 0 {
		d.y += lineHeight
		d.text("small", left, d.y, fmt.Sprintf("and %d more", others))
		d.text("small size", size, d.y, exact(rest)+" in all")
		d.text("small size", percent, d.y, share(rest, d.total))
	}
}

// rows are the arenas, each as wide as it is long.
func (d *walkDrawing) rows() {
	names, sizes := 8, 8
	for _, r := range d.walk.rows {
		names = max(names, letters(r.title()))
		sizes = max(sizes, len(sizeText(r.whole())))
	}
	column := letter*px(sizes) + 200
	right := width - margin - 3*column
	left := min(margin+letter*px(names)+120, right-600)
	d.y += 420
	d.path("grid", "M%s %s H%s", margin, d.y-270, width-margin)
	d.text("head", margin, d.y, "by arena")
	for i, text := range []string{"used, temp", "free", "with slack"} {
		d.text("small size", right+column*px(i+1), d.y, text)
	}
	for _, r := range d.walk.rows {
		d.y += lineHeight
		d.text("", margin, d.y, fitting(r.title(), left-margin-60))
		at, offset := scale{left, right, r.whole()}, uint64(0)
		for kind, size := range r.kindSums {
			from := at.x(offset)
			offset += size
			d.piece(kind, r.class, from, d.y-120, at.x(offset)-from, 140, rangeKinds[kind].name+": "+exact(size)+" bytes")
		}
		for i, size := range []uint64{r.held(), r.kindSums[freeKind], r.whole()} {
			d.text("size", right+column*px(i+1), d.y, sizeText(size))
		}
	}
}

package guide_test

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/internal/seam"
	"github.com/upfront-mem/upfront/budget/view"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

var stacks = seam.Stacks.(func(*budget.Budget) []*stack.Stack)

// film records the scopes of a budget, to draw them. Its time counts steps: each scope that opens
// or ends takes some.
type film struct {
	calls       string // the calls that the signs show
	stacks      []*stack.Stack
	rows        []*row
	now         int
	signs       []sign
	frame       int    // the number of the current frame
	temporaries bool   // whether there were any
	match       string // the name of the scopes of slots that open next
}

// row is an arena over time.
type row struct {
	name, kind  string
	size        uint64
	boxes       []*box
	open, temps []*box // of boxes, the newest last
}

// box is a scope or temporaries: from a step until another, and from an offset on.
type box struct {
	name        string
	temp        bool
	from, until int
	still       int // the step from which the scope is frozen; 0: never
	offset, end uint64
}

// sign is a text above the rows.
type sign struct {
	at   int
	text string
}

// record starts a film of b.
func record(t *testing.T, b *budget.Budget) *film {
	t.Helper()
	f := &film{}
	arenas := b.Report().Arenas
	for i, st := range stacks(b) {
		r := &row{name: arenas[i].Name, kind: arenas[i].Kind, size: arenas[i].Size}
		f.rows, f.stacks = append(f.rows, r), append(f.stacks, st)
		require.True(t, st.Record(func(e stack.Event) { f.event(r, e) }))
	}
	return f
}

// look draws the scopes that opened since the last event of their arenas.
func (f *film) look() {
	for _, st := range f.stacks {
		st.AppendUsage(nil, nil)
	}
}

func (f *film) event(r *row, e stack.Event) {
	switch e.Kind {
	case stack.EventOpen:
		f.opened(r, e.Name)
	case stack.EventClose:
		f.ended(&r.open)
	case stack.EventGrow:
		r.open[len(r.open)-1].end += e.Size
	case stack.EventTemp:
		f.temporaries = true
		end := r.size
		if n := len(r.temps); n != 0 {
			end = r.temps[n-1].offset
		}
		x := &box{name: "temp", temp: true, from: f.now, offset: end - e.Size, end: end}
		r.boxes, r.temps = append(r.boxes, x), append(r.temps, x)
		f.now += 4
	case stack.EventTempEnd:
		f.ended(&r.temps)
		r.open[0].still = f.now
	}
}

func (f *film) opened(r *row, name string) {
	x := &box{name: name, from: f.now}
	if n := len(r.open); n != 0 {
		x.offset = r.open[n-1].end
	}
	x.end = x.offset
	r.boxes, r.open = append(r.boxes, x), append(r.open, x)
	switch r.kind {
	case "frame":
		f.frame++
		x.name = fmt.Sprint("frame ", f.frame)
		f.freeze(r)
		f.now++
	case "scratch":
		f.now += 3
	case "slot":
		x.name = f.match
		f.now += 4
		x.still = f.now
	default:
		f.signs = append(f.signs, sign{f.now, r.name})
		f.freeze(r)
		f.now += 8
	}
}

// freeze marks the scopes of the other regions, or of the frame's other buffers, as frozen.
func (f *film) freeze(by *row) {
	for _, r := range f.rows {
		if r != by && r.kind == by.kind && len(r.open) != 0 && r.open[0].still == 0 {
			r.open[0].still = f.now
		}
	}
}

func (f *film) ended(open *[]*box) {
	last := len(*open) - 1
	(*open)[last].until = f.now
	*open = (*open)[:last]
	f.now++
}

// The positions of a picture, in pixels.
const (
	width    = 880
	left     = 150
	right    = width - 20
	firstRow = 100
	gap      = 10         // between rows
	perPixel = budget.KiB // of an arena
	letter   = 8          // at most; small texts have narrower ones
)

// drawing is a picture of a film. Shapes of the front cover those of the back.
type drawing struct {
	film        *film
	back, front bytes.Buffer
}

// draw returns the picture of a film.
func (f *film) draw(t *testing.T, title, about string) string {
	t.Helper()
	d := drawing{film: f}
	d.text("title", 20, 32, title)
	d.legend()
	y := firstRow
	for _, r := range f.rows {
		d.text("head", 20, y+14, r.name)
		d.text("small", 20, y+30, budget.SizeText(r.size))
		d.rect(&d.back, "ground", left, y, right-left, r.height())
		if r.kind == "scratch" {
			d.text("small", 20, y+46, r.names())
		}
		for _, x := range r.boxes {
			d.box(r, x, y+r.height())
		}
		y += r.height() + gap
	}
	d.text("small size", left-10, firstRow-12, f.calls)
	for _, s := range f.signs {
		fmt.Fprintf(&d.back, `<path class="line" stroke-dasharray="2 3" d="M%d %dV%d"/>`+"\n", d.x(s.at), firstRow-8, y)
		d.text("small", d.x(s.at)+1, firstRow-12, s.text)
	}
	d.text("small size", left-10, y+12, "time")
	fmt.Fprintf(&d.front, `<path class="line" d="M%d %dH%d"/>`+"\n"+`<path class="point" d="M%d %dl-8-4v8z"/>`+"\n",
		left, y+8, right-6, right, y+8)
	height := y + 28
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+
		"\n"+"<title>%s</title>\n<desc>%s</desc>\n%s"+`<rect class="paper" width="%d" height="%d" rx="6"/>`+
		"\n%s%s</svg>\n", width, height, width, height, html.EscapeString(title), html.EscapeString(about), style(t),
		width, height, &d.back, &d.front)
}

// names returns the names of the scopes, each once.
func (r *row) names() string {
	var list []string
	for _, x := range r.boxes {
		if !slices.Contains(list, x.name) {
			list = append(list, x.name)
		}
	}
	return strings.Join(list, ", ")
}

func (r *row) height() int { return int(r.size / perPixel) }

func (d *drawing) x(step int) int { return left + step*(right-left)/d.film.now }

func (d *drawing) text(class string, x, y int, text string) {
	fmt.Fprintf(&d.front, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y, html.EscapeString(text))
}

func (d *drawing) rect(to *bytes.Buffer, class string, x, y, w, h int) {
	fmt.Fprintf(to, `<rect class="%s" x="%d" y="%d" width="%d" height="%d"/>`+"\n", class, x, y, w, h)
}

func (d *drawing) legend() {
	x := 20
	for _, one := range []struct{ class, text string }{{"region", "allocates"},
		{"region pale", "frozen or covered; its objects can be used"}, {"temp", "temporaries"}, {"ground", "free"}} {
		if one.class == "temp" && !d.film.temporaries {
			continue
		}
		d.rect(&d.front, one.class, x, 46, 12, 12)
		d.text("small", x+18, 57, one.text)
		x += 40 + 13*len(one.text)/2
	}
}

// box draws a scope of a row whose first byte is at base: pale, and in full colour while the scope
// allocates.
func (d *drawing) box(r *row, x *box, base int) {
	class := "region"
	switch {
	case x.temp:
		class = "temp"
	case r.kind == "frame" || r.kind == "scratch":
		class = r.kind
	}
	top := base - int((x.end+perPixel-1)/perPixel)
	tall := base - int(x.offset/perPixel) - top
	from, until := d.x(x.from), d.x(x.until)
	fmt.Fprintf(&d.front, `<rect class="paper" x="%d" y="%d" width="%d" height="%d"/>`+"\n", from, top,
		until-from, tall)
	d.rect(&d.front, class+" pale", from, top, until-from, tall)
	shown := false
	for _, busy := range r.allocates(x) {
		from, until := d.x(busy[0]), d.x(busy[1])
		d.rect(&d.front, class, from, top, until-from, tall)
		if !shown && r.kind != "scratch" && letter*len(x.name) <= until-from {
			d.text("in", (from+until)/2, top+15, x.name)
			shown = true
		}
	}
	d.rect(&d.front, "line", from, top, until-from, tall)
	if first := d.x(r.allocates(x)[0][1]); !shown && r.kind != "scratch" && letter*len(x.name) <= until-first {
		d.text("", first+5, top+15, x.name)
	}
}

// allocates returns the steps in which a scope is the topmost one of its arena and isn't frozen.
func (r *row) allocates(x *box) (list [][2]int) {
	from, until := x.from, x.until
	if x.still != 0 {
		until = x.still
	}
	for _, other := range r.boxes {
		if other != x && !x.temp && !other.temp && other.from >= from && other.until <= until {
			list = append(list, [2]int{from, other.from})
			from = other.until
		}
	}
	return append(list, [2]int{from, until})
}

// style returns the colours of package view's pictures, in both modes.
func style(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, view.Plan(&b, plan))
	_, after, found := strings.Cut(b.String(), "<style>")
	require.True(t, found)
	css, _, found := strings.Cut(after, "</style>")
	require.True(t, found)
	return "<style>" + css + "</style>\n"
}

// TestGameGolden draws the example's run.
func TestGameGolden(t *testing.T) {
	b, err := budget.Open(plan)
	require.NoError(t, err)
	f := record(t, b)
	f.calls = "load"
	require.NoError(t, game(b))
	f.signs = append(f.signs, sign{f.now, "close"})
	require.NoError(t, b.Close())
	golden(t, "testdata/game.svg", f.draw(t, "a game's memory over time",
		"Regions are loaded and frozen: init, systems, and twice a level with temporaries. The frame's two buffers "+
			"take turns. On scratch a scope opens in another in each frame. Close ends all."))
}

// TestServerGolden draws the slots and leases of a server.
func TestServerGolden(t *testing.T) {
	b, err := budget.Open(budget.Plan{Name: "server",
		Regions: []budget.RegionPlan{{Name: "room", Size: 64 * budget.KiB, Slots: 3}},
		Scratch: budget.ScratchPlan{Workers: 2, Each: 1, Size: 64 * budget.KiB}})
	require.NoError(t, err)
	f := record(t, b)
	f.calls = "Acquire"
	ctx, rooms := context.Background(), b.Slots("room")
	begin := func(match string, size int) budget.Region {
		f.signs = append(f.signs, sign{f.now, match})
		f.match = match
		room, err := rooms.Acquire()
		if err != nil {
			return budget.Region{}
		}
		_, err = budget.Load(ctx, room, func(s scope.Scope) (*Frog, error) { s.Bytes(size); return nil, nil })
		require.NoError(t, err)
		return room
	}
	end := func(room budget.Region) { require.NoError(t, room.Release(ctx)) }
	request := func(size int, during func()) {
		lease, err := b.Lease(ctx)
		require.NoError(t, err)
		s := lease.Scratch(0).Open("request")
		s.Bytes(size)
		f.look()
		during()
		require.NoError(t, s.Close())
		require.NoError(t, lease.Release())
	}
	none := func() {}
	ada := begin("ada", 40_000)
	request(10_000, none)
	ben := begin("ben", 24_000)
	request(20_000, func() { request(30_000, none) })
	cy := begin("cy", 50_000)
	request(15_000, none)
	require.Equal(t, budget.Region{}, begin("dan: refused", 0))
	request(40_000, func() { request(10_000, none) })
	end(ben)
	eve := begin("eve", 30_000)
	request(25_000, none)
	end(ada)
	request(10_000, func() { request(20_000, none) })
	fay := begin("fay", 60_000)
	end(cy)
	request(30_000, none)
	end(eve)
	end(fay)
	require.NoError(t, b.Close())
	golden(t, "testdata/server.svg", f.draw(t, "slots and leases over time",
		"Each match loads a slot of the region room and releases it. A match that comes while all three slots are "+
			"acquired is refused. Each request opens a scope on scratch that it leases."))
}

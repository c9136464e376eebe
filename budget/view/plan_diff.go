package view

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// PlanDiff draws two plans as memory maps next to each other, to one scale, with the lowest address
// at the top. Parts of the plans match by name. If a part is in both plans, a band joins the part's
// blocks, and shows whether the part has grown, shrunk or moved. A sign shows whether a part was
// added, is gone, or has other settings. A small part is drawn with a minimum height. Below the
// maps each part has a line with its sizes, its first addresses (offsets if the plan sets no base)
// and the settings that differ. At the end are the sums of [budget.Plan.Cost].
//
// For an invalid plan, PlanDiff returns the error of [budget.Plan.Cost] with the plan's name, and
// writes nothing.
func PlanDiff(w io.Writer, a, b budget.Plan) error {
	d := planDiff{title: "plan " + a.Name}
	if a.Name != b.Name {
		d.title += " → " + b.Name
	}
	for i, plan := range []budget.Plan{a, b} {
		cost, err := plan.Cost()
		if err != nil {
			return fmt.Errorf("plan %c, %s: %w", 'A'+i, jsonfile.Quote(plan.Name), err)
		}
		d.side[i] = sideOf(plan, cost)
	}
	return d.draw(w)
}

const (
	diffTop    px = 1240
	diffScale  px = 4800 // the height of the larger plan, but for least heights
	diffLeast  px = 220
	diffRight  px = width/2 - 600 // end of A's blocks; B's begin as far right of the middle
	diffWide   px = 1060
	diffInset  px = 10
	diffOutset px = 260 // from a block to its name, around its sign
	diffNames  px = margin + 240
	diffNotes     = 118 // letters of a line of settings
)

// diffColumns are the ends of the list's columns.
var diffColumns = [...]px{3750, 4950, 6200, 7400, width - margin}

// diffSigns are paths around 0, by the state of a part in B. States are also classes of the style.
var diffSigns = map[string]string{
	"added":    "M-4 0h8M0 -4v8",
	"gone":     "M-4 0h8",
	"grown":    "M-4 2L0 -2.5L4 2",
	"shrunk":   "M-4 -2L0 2.5L4 -2",
	"moved":    "M0 -4.5v9M-2.5 -2L0 -4.5L2.5 -2M-2.5 2L0 4.5L2.5 2",
	"settings": "M-4 1q2 -4 4 -1t4 -1",
}

// planSide is one of two plans. Its parts begin with the tables.
type planSide struct {
	parts    []part
	base     uint64
	cost     budget.Cost
	settings map[string]string // the values of the plan's JSON by path: "/regions/level/state"
	y        map[string][2]px  // the begin and end of each part's block
}

func sideOf(p budget.Plan, cost budget.Cost) planSide {
	s := planSide{parts: layOut(p, cost).parts, base: p.Base, cost: cost, settings: map[string]string{},
		y: map[string][2]px{}}
	var object map[string]any
	if text, err := p.MarshalJSON(); err == nil && json.Unmarshal(text, &object) == nil {
		flatten(s.settings, "", object)
	}
	return s
}

func flatten(into map[string]string, at string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			flatten(into, at+"/"+key, v)
		}
	case []any: // regions, and expectations of a part or a label
		for _, v := range value {
			object, names := v.(map[string]any), []string{}
			for _, key := range []string{"name", "part", "label"} {
				if name, is := object[key].(string); is {
					names = append(names, name)
					delete(object, key)
				}
			}
			flatten(into, at+"/"+strings.Join(names, " "), object)
		}
	default:
		into[at] = clip(fmt.Sprint(value), 48)
	}
}

// path returns the part's path in the plan's JSON, which identifies the part.
func (p part) path() string {
	if p.class == "region" {
		return "/regions/" + p.name + "/"
	}
	return "/" + p.name + "/"
}

func (p part) bytes() uint64 { return p.size * p.count }

// sized returns the part's size and count, or "" for no part.
func (p part) sized() string {
	switch p.count {
	case 0:
		return ""
	case 1:
		return sizeText(p.size)
	}
	return fmt.Sprintf("%d×%s", p.count, sizeText(p.size))
}

// part returns the part with a path, or no part.
func (s planSide) part(path string) part {
	if i := slices.IndexFunc(s.parts, func(p part) bool { return p.path() == path }); i >= 0 {
		return s.parts[i]
	}
	return part{}
}

func (s planSide) address(p part) string {
	switch {
	case p.count == 0:
		return ""
	case s.base != 0:
		return fmt.Sprintf("%#x", s.base+p.offset)
	}
	return fmt.Sprintf("+%#x", p.offset)
}

// place sets the heights of the blocks, and returns the end of the last.
func (s planSide) place(to scale) (bottom px) {
	bottom = diffTop
	for _, p := range s.parts {
		top := bottom
		bottom += to.reach(p.each*p.count, diffLeast)
		s.y[p.path()] = [2]px{top, bottom}
	}
	return bottom
}

// planDiff is the picture of two plans.
type planDiff struct {
	picture
	title string
	side  [2]planSide
	y     px // of the last line
}

// paths returns the parts of both plans in B's order. A part that is gone follows the part before
// it in A.
func (d *planDiff) paths() (paths []string) {
	for _, p := range d.side[1].parts {
		paths = append(paths, p.path())
	}
	at := 0
	for _, p := range d.side[0].parts {
		i := slices.Index(paths, p.path())
		if i < 0 {
			i = at
			paths = slices.Insert(paths, i, p.path())
		}
		at = i + 1
	}
	return paths
}

// notes returns the settings at a path that differ: "slots 3 → 4; + state true". Sizes have columns
// of their own, unless a size is Rest.
func (d *planDiff) notes(at string) string {
	from, to := d.side[0].settings, d.side[1].settings
	all := maps.Clone(from)
	maps.Copy(all, to)
	var notes []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		a, inA := from[key]
		b, inB := to[key]
		name, ok := strings.CutPrefix(key, at)
		name = strings.ReplaceAll(name, "/", ".")
		switch {
		case !ok || a == b || name == "name" || at != "/" && name == "size" && a != "rest" && b != "rest":
		case at == "/" && (strings.HasPrefix(key, "/regions/") || strings.HasPrefix(key, "/frame/") ||
			strings.HasPrefix(key, "/scratch/")):
		case !inA:
			notes = append(notes, "+ "+name+" "+b)
		case !inB:
			notes = append(notes, "− "+name+" "+a)
		default:
			notes = append(notes, name+" "+a+" → "+b)
		}
	}
	return strings.Join(notes, "; ")
}

// states returns the states that a part's sign and its band show.
func (d *planDiff) states(path string) (sign, band string) {
	a, b := d.side[0].part(path), d.side[1].part(path)
	switch {
	case a.count == 0:
		return "added", ""
	case b.count == 0:
		return "gone", ""
	case a.bytes() < b.bytes():
		return "grown", "grown"
	case a.bytes() > b.bytes():
		return "shrunk", "shrunk"
	}
	band = "untouched"
	if a.offset != b.offset {
		band = "moved"
	}
	if d.notes(path) != "" {
		return "settings", band
	}
	return band, band
}

func (d *planDiff) draw(w io.Writer) error {
	d.body.WriteString(diffStyle)
	d.text("title", margin, 320, d.title)
	d.legend()
	to := scale{0, diffScale, max(d.side[0].cost.Addresses, d.side[1].cost.Addresses)}
	d.y = max(d.side[0].place(to), d.side[1].place(to))
	paths, differ := d.paths(), []string{}
	for _, at := range paths {
		sign, _ := d.states(at)
		if d.band(at); sign != "untouched" {
			differ = append(differ, path.Base(at)+" "+sign)
		}
	}
	for i, side := range d.side {
		x := [...]px{diffRight - diffWide, width - diffRight}[i]
		d.text("head middle", x+diffWide/2, diffTop-100, fmt.Sprintf("%c: %s", 'A'+i, sizeText(side.cost.Addresses)))
		for _, p := range side.parts {
			d.block(i, x, p)
		}
	}
	least := (to.total*uint64(diffLeast) + uint64(diffScale) - 1) / uint64(diffScale)
	d.y += 240
	d.text("small", margin, d.y, "to scale, addresses from top to bottom; parts below "+sizeText(least)+" have "+
		"that height; pale: edges and guards")
	d.list(paths)
	return d.writeTo(w, d.title, "Two memory maps, lowest addresses first: "+
		strings.Join(append(differ, "the rest untouched"), ", "), d.y+160)
}

func (d *planDiff) legend() {
	x := margin
	for _, state := range []string{"added", "gone", "grown", "shrunk", "moved", "settings", "untouched"} {
		if diffSigns[state] != "" {
			d.sign(state, x+80, 640)
			x += 220
		}
		d.rect("band "+state, x, 585, 240, 110)
		x += 300
		d.text("small", x, 682, state)
		x += long(state) + 220
	}
}

// sign draws the sign of a state, if it has one.
func (d *planDiff) sign(state string, x, y px) {
	if sign := diffSigns[state]; sign != "" {
		fmt.Fprintf(&d.body, `<g class="%s" transform="translate(%s %s)"><circle class="badge" r="8"/>`+
			`<path class="sign" d="%s"/></g>`+"\n", state, x, y, sign)
	}
}

// band joins the blocks of a part that both plans have.
func (d *planDiff) band(path string) {
	if _, state := d.states(path); state != "" {
		const left, middle, right = diffRight, width / 2, width - diffRight
		a, b := d.side[0].y[path], d.side[1].y[path]
		top, bottom := [2]px{a[0] + diffInset, b[0] + diffInset}, [2]px{a[1] - diffInset, b[1] - diffInset}
		d.path("band "+state, "M%s %s C%s %s %s %s %s %s V%s C%s %s %s %s %s %s z", left, top[0], middle, top[0],
			middle, top[1], right, top[1], bottom[1], middle, bottom[1], middle, bottom[0], left, bottom[0])
	}
}

// block draws all arenas of a part of side i as one, with their edges and guards at the end.
func (d *planDiff) block(i int, x px, p part) {
	y := d.side[i].y[p.path()]
	top, height := y[0]+diffInset, y[1]-y[0]-2*diffInset
	solid := scale{0, height, p.each * p.count}.reach(p.bytes(), 10)
	d.told(slackClass, x, top, diffWide, height, fmt.Sprintf("%s: %s bytes at %s", p.name, exact(p.bytes()),
		d.side[i].address(p)))
	d.rect(p.class, x, top, diffWide, solid)
	if text := p.sized(); solid >= 160 && long(text) < diffWide {
		d.text("in", x+diffWide/2, top+solid/2+45, text)
	}
	sign, _ := d.states(p.path())
	if sign == "added" || sign == "gone" {
		d.rect("band "+sign, x, top, diffWide, height)
	}
	middle := top + height/2
	if i == 1 {
		d.text("", x+diffWide+diffOutset, middle+45, p.name)
		d.sign(sign, x+diffWide+diffOutset/2, middle)
		return
	}
	d.text("size", x-diffOutset, middle+45, p.name)
	if sign == "gone" {
		d.sign(sign, x-diffOutset/2, middle)
	}
}

// list writes a line for each part, and the sums.
func (d *planDiff) list(paths []string) {
	d.y += 160
	d.line("head ", "", "", "A", "B", "change", "A begins at", "B begins at")
	if notes := d.notes("/"); notes != "" {
		d.line("", "settings", "the plan")
		d.note(notes)
	}
	edges := [2]uint64{d.side[0].cost.Addresses, d.side[1].cost.Addresses}
	for _, at := range paths {
		a, b := d.side[0].part(at), d.side[1].part(at)
		edges[0] -= a.bytes()
		edges[1] -= b.bytes()
		sign, band := d.states(at)
		d.line("", sign, path.Base(at), a.sized(), b.sized(), deltaText(a.bytes(), b.bytes()), d.side[0].address(a),
			d.side[1].address(b))
		if band != "" {
			d.note(d.notes(at))
		}
	}
	a, b := d.side[0].cost, d.side[1].cost
	d.sum("", "edges, guards", edges[0], edges[1])
	d.path("grid", "M%s %s H%s", margin, d.y+80, width-margin)
	d.y += 40
	d.sum("head ", "addresses", a.Addresses, b.Addresses)
	d.sum("head ", "resident at most", a.Resident4K, b.Resident4K)
	d.sum("", "with pages of 64KiB", a.Resident64K, b.Resident64K)
	d.sum("", "Go heap", a.GoHeap, b.GoHeap)
	d.sum("", "C heap", a.CHeap, b.CHeap)
	d.sum("", "quotas", a.Quotas, b.Quotas)
}

// sum writes a line of two figures, unless both are 0.
func (d *planDiff) sum(class, name string, a, b uint64) {
	if a != 0 || b != 0 {
		d.line(class, "", name, sizeText(a), sizeText(b), deltaText(a, b))
	}
}

func (d *planDiff) line(class, sign, name string, cells ...string) {
	d.y += lineHeight
	d.sign(sign, margin+80, d.y-45)
	d.text(strings.TrimSpace(class), diffNames, d.y, name)
	for i, cell := range cells {
		if cell != "" {
			d.text(class+"size", diffColumns[i], d.y, cell)
		}
	}
}

// note writes a text below a line.
func (d *planDiff) note(text string) {
	for _, line := range wrapped(text, diffNotes, 4) {
		d.y += 180
		d.text("small", diffNames, d.y, line)
	}
}

// deltaText returns the difference of two sizes, or "" if they are equal.
func deltaText(a, b uint64) string {
	switch {
	case a < b:
		return "+" + sizeText(b-a)
	case a > b:
		return "−" + sizeText(a-b)
	}
	return ""
}

// diffStyle follows style. The faintest band joins the blocks of an untouched part.
const diffStyle = `<style>
  .band { fill: #6e7781; fill-opacity: .12; stroke: none } .band.moved { stroke: #6e7781 }
  .band.grown { fill: #9a6700; fill-opacity: .3; stroke: #9a6700 } .band.shrunk { fill: #0e7490; stroke: #0e7490; stroke-dasharray: 5 3 }
  .band.added, .band.gone { fill: none; stroke: #1f2328; stroke-width: 3 } .band.gone { stroke-dasharray: 1 4; stroke-linecap: round }
  .badge { fill: #59636e } .sign { fill: none; stroke: #ffffff; stroke-width: 2 }
  .added .badge { fill: #1a7f37 } .gone .badge { fill: #cf222e } .grown .badge { fill: #9a6700 } .shrunk .badge { fill: #0e7490 }
  @media (prefers-color-scheme: dark) {
    .band { fill: #8b949e } .band.moved { stroke: #8b949e } .band.added, .band.gone { stroke: #f0f6fc } .badge { fill: #9198a1 } .sign { stroke: #0d1117 }
    .band.grown { fill: #d29922; stroke: #d29922 } .band.shrunk { fill: #39c5cf; stroke: #39c5cf }
    .added .badge { fill: #56d364 } .gone .badge { fill: #ff7b72 } .grown .badge { fill: #d29922 } .shrunk .badge { fill: #39c5cf }
  }
</style>
`

package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/upfront-mem/upfront/budget"
)

// amount is a number of bytes or chunks in a line, with its text. An amount without a text isn't
// shown.
type amount struct {
	text  string
	value uint64 // exact; of each arena if there are several
}

// cells are the amounts of a line. If the line is of several arenas, cellNow and cellMost are those
// of the fullest, so a reader can compare them, and the bar shows cellSum.
type cells [4]amount

const (
	cellSum = iota // the bytes of all arenas now; shown if there are several
	cellNow
	cellMost
	cellPlanned
)

var cellNames = [...]string{cellSum: "together", cellNow: "now", cellMost: "at most", cellPlanned: "planned"}

func sized(bytes uint64) amount { return amount{sizeText(bytes), bytes} }

// firstCell returns the first column that the lines need: cellSum if a line has several arenas.
func firstCell(lines []reportLine) int {
	if slices.ContainsFunc(lines, func(l reportLine) bool { return l.cells[cellSum].text != "" }) {
		return cellSum
	}
	return cellNow
}

// cellWidths returns the letters of the widest cell of each column, its name included.
func cellWidths(lines []reportLine) (widths [len(cellNames)]int) {
	for i, name := range cellNames {
		widths[i] = len(name)
		for _, l := range lines {
			if l.barred() {
				widths[i] = max(widths[i], letters(l.cells[i].text))
			}
		}
	}
	return widths
}

// barred reports whether a line has amounts.
func (l reportLine) barred() bool {
	return l.kind != headLine && l.kind != noteLine && l.kind != badLine
}

// shown returns the name, clipped to the longest that a plan allows with "scope" before it.
func (l reportLine) shown() string { return clip(l.name, nameLetters+len("scope ")) }

type lineKind int

const (
	headLine  lineKind = iota // a name before others
	partLine                  // a part of the plan
	nameLine                  // a label or a scope
	chunkLine                 // its pools
	sumLine                   // only amounts
	noteLine                  // a text; about a part if it has a class
	badLine                   // an error
)

// reportLine is a line of a report, as a picture and as text.
type reportLine struct {
	kind   lineKind
	class  string // its colour
	name   string
	of     uint64               // the full length of its bar: the part's size
	stack  []stacked            // of a part: the holders of its bytes now
	arenas []budget.ArenaReport // of a part
	cells  cells
	alone  bool   // all is in one arena, so the bar also shows the peak
	detail string // to the byte
}

// stacked is the bytes that one holder uses in a part.
type stacked struct {
	class string
	size  uint64
}

func reportLines(r budget.Report) (lines []reportLine) {
	rest, several, outside := r.Size, false, heapLines(r.GoHeap)
	for _, p := range reportParts(r) {
		if p.Kind == cHeap {
			outside = append(append(outside, p.lines()...), runtimeLines(r.CHeap, p.class)...)
			continue
		}
		if p.Kind == quota {
			outside = append(outside, p.lines()...)
			continue
		}
		lines = append(lines, p.lines()...)
		rest -= min(rest, p.size)
		several = several || len(p.Arenas) > 1 || p.Value("pool_chunks_peak") != 0
	}
	lines = append(lines, reportLine{kind: sumLine, class: "other pale", name: "tables, edges, guards",
		cells: cells{cellPlanned: sized(rest)}})
	if several {
		lines = append(lines, reportLine{kind: noteLine,
			name: "slots, buffers and scratch arenas: together is their sum now; now and at most are of " +
				"the fullest; pools: at most is the sum of each pool's own peak"})
	}
	outside = append(outside, residentLines(r.Outside)...)
	lines = append(lines, headed("outside the budget", outside)...)
	lines = append(lines, headed("proxies", proxyLines(r))...)
	return append(lines, headed("notes and errors", badLines(r))...)
}

// headed returns the lines with a head before them, or none.
func headed(head string, lines []reportLine) []reportLine {
	if len(lines) == 0 {
		return nil
	}
	return append([]reportLine{{kind: headLine, name: head}}, lines...)
}

// reportPart is a part of the report with its drawing.
type reportPart struct {
	budget.Part
	class     string
	now, size uint64 // of all its arenas
	note      string // of the region, in the plan
	expected  []budget.Expected
}

func reportParts(r budget.Report) (parts []reportPart) {
	for _, p := range r.Parts() {
		of := reportPart{p, classOf(p.Kind), p.Value("used"), p.Value("size"), "", nil}
		for _, region := range r.Plan.Regions {
			if region.Name == p.Name {
				of.note = region.Note
			}
		}
		for _, e := range r.Plan.Expected {
			if e.Part == p.Name {
				of.expected = append(of.expected, e)
			}
		}
		parts = append(parts, of)
	}
	return parts
}

// own returns the part's line. The bar of several arenas shows the sum of their bytes now.
func (p *reportPart) own() reportLine {
	l := arenaLine(p.Name, p.Value("arena_used"), p.Value("arena_peak"), p.Value("arena_size"))
	l.kind, l.class, l.of, l.arenas = partLine, p.class, p.size, p.Arenas
	if n := len(p.Arenas); n > 1 {
		l.alone = false
		l.cells[cellSum] = sized(p.now)
		l.detail = fmt.Sprintf("%s: %s bytes now and %s at most in one, of %d×%s; %s together", p.Name,
			exact(l.cells[cellNow].value),
			exact(l.cells[cellMost].value), n, exact(l.cells[cellPlanned].value), exact(p.now))
		l.cells[cellPlanned].text = fmt.Sprintf("%d×%s", n, l.cells[cellPlanned].text)
	}
	return l
}

func arenaLine(name string, used, peak, size uint64) reportLine {
	return reportLine{kind: nameLine, name: name, of: size, alone: true,
		cells:  cells{cellSum: {value: used}, cellNow: sized(used), cellMost: sized(peak), cellPlanned: sized(size)},
		detail: fmt.Sprintf("%s: %s bytes now, %s at most, of %s", name, exact(used), exact(peak), exact(size))}
}

// bar returns the sections of its bar that a line fills: the bytes now, and the peak if the line
// shows it.
func (l *reportLine) bar() (used, peak uint64) {
	if l.alone {
		peak = l.cells[cellMost].value
	}
	return l.cells[cellSum].value, peak
}

// namesShown is the number of scopes, labels, proxies, errors or lines of code with a line each.
const namesShown = 8

// lines returns the part's own line, and then its holders.
func (p *reportPart) lines() []reportLine {
	labels, scopes := p.usage("label", p.Labels), p.usage("scope", p.Scopes)
	own := p.own()
	if len(labels) != 0 {
		rest := p.now
		for _, l := range labels {
			rest -= min(rest, l.cells[cellSum].value)
		}
		if rest != 0 {
			labels = append(labels, otherLine("no label", rest, p.size, len(p.Arenas) == 1))
		}
		own.stack = coloured(labels)
		for i := range scopes {
			scopes[i].class = "other"
		}
	} else {
		own.stack = coloured(scopes)
	}
	lines := append([]reportLine{own}, p.notes()...)
	return append(append(append(lines, labels...), scopes...), p.after()...)
}

// holder is a label, a scope, a proxy or a line of code that holds bytes.
type holder struct {
	name                 string
	bytes, peak, objects uint64
	fullest              uint64 // the bytes in the arena with the most
	expected             uint64 // by the plan; 0: nothing
	calls                string // the calls that led to the line
}

// holders returns a line for each of the first holders, and one for all others. The peaks of the
// others may be of different times, so only their bytes now are summed. If alone is true, all bytes
// are in one arena, and the bar also shows the peak.
func holders(list []holder, kind, class string, of uint64, alone bool) (lines []reportLine) {
	slices.SortStableFunc(list, func(a, b holder) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(b.peak, a.peak), cmp.Compare(a.name, b.name))
	})
	for i, h := range list {
		if i == namesShown {
			sum := uint64(0)
			for _, h := range list[i:] {
				sum += h.bytes
			}
			return append(lines, otherLine("and "+many(len(list)-i, kind)+" more", sum, of, alone))
		}
		objects := ""
		if h.objects != 0 {
			objects = " in " + many(h.objects, "object")
		}
		line := reportLine{kind: nameLine, class: class, name: kind + " " + h.name, of: of, alone: alone,
			detail: fmt.Sprintf("%s %s: %s bytes now%s%s", kind, h.name, exact(h.bytes), objects, h.calls)}
		line.inUse(h.bytes, alone)
		if h.peak != 0 {
			line.cells[cellMost] = sized(h.peak)
			line.detail += ", " + exact(h.peak) + " at most"
			if !alone {
				line.cells[cellNow] = sized(h.fullest)
				line.detail = fmt.Sprintf("%s %s: %s bytes now and %s at most in one; %s together%s", kind, h.name,
					exact(h.fullest), exact(h.peak), exact(h.bytes), objects)
			}
		}
		if h.expected != 0 {
			line.cells[cellPlanned] = sized(h.expected)
			line.detail += ", " + exact(h.expected) + " expected"
		}
		lines = append(lines, line)
	}
	return lines
}

// otherLine returns a line of the bytes in use that have no holder's line.
func otherLine(name string, bytes, of uint64, alone bool) reportLine {
	line := reportLine{kind: nameLine, class: "other", name: name, of: of, detail: name + ": " + exact(bytes) +
		" bytes now"}
	line.inUse(bytes, alone)
	return line
}

// inUse sets the cells of the bytes in use now, which may be of several arenas.
func (l *reportLine) inUse(bytes uint64, alone bool) {
	l.cells[cellSum] = amount{value: bytes}
	if alone {
		l.cells[cellNow] = sized(bytes)
	} else {
		l.cells[cellSum] = sized(bytes)
	}
}

// usage returns the lines of the part's scopes or labels, by name.
func (p *reportPart) usage(kind string, names []budget.PartUsage) []reportLine {
	var list []holder
	for _, u := range names {
		if u.Bytes|u.Peak != 0 {
			h := holder{name: u.Name, bytes: u.Bytes, peak: u.Peak, objects: u.Objects, fullest: u.ArenaBytes}
			for _, e := range p.expected {
				if kind == "label" && e.Label == u.Name {
					h.expected = e.Most()
				}
			}
			list = append(list, h)
		}
	}
	return holders(list, kind, p.class, p.size, len(p.Arenas) == 1)
}

// coloured gives each line a colour if several hold bytes. It returns the bytes and colours of the
// lines, for the part's bar.
func coloured(lines []reportLine) (stack []stacked) {
	holding := 0
	for _, l := range lines {
		if l.cells[cellSum].value != 0 {
			holding++
		}
	}
	for i := range lines {
		if lines[i].class != "other" && holding > 1 {
			lines[i].class = colour(i)
		}
		stack = append(stack, stacked{lines[i].class, lines[i].cells[cellSum].value})
	}
	return stack
}

// notes returns the lines before the part's holders: the region's note, which may name the run that
// its size is from, the fullest arenas, allocations that didn't fit, warnings and peaks above the
// plan's expectations.
func (p *reportPart) notes() (lines []reportLine) {
	note := func(kind lineKind, text string) {
		lines = append(lines, reportLine{kind: kind, class: p.class, name: text})
	}
	if p.note != "" {
		note(noteLine, "note: "+p.note)
	}
	if len(p.Arenas) > 1 {
		note(noteLine, p.fullest())
	}
	full, warned := "", ""
	for _, a := range p.Arenas {
		if a.LastFull != "" {
			full = "; last: " + a.LastFull
		}
		if a.LastWarning != 0 {
			warned = fmt.Sprintf("; %s last at %s of %s", clip(a.Name, nameLetters), sizeText(a.LastWarning),
				sizeText(a.Size))
		}
	}
	if count := p.Value("fulls"); count != 0 || full != "" {
		note(badLine, "full "+many(count, "time")+full)
	}
	if count := p.Value("warnings"); count != 0 {
		note(noteLine, "warned "+many(count, "time")+warned)
	}
	for _, e := range p.expected {
		name, peak := p.Name, p.Value("arena_peak")
		if e.Label != "" {
			name, peak = "label "+clip(e.Label, nameLetters), 0
			for _, u := range p.Labels {
				if u.Name == e.Label {
					peak = u.Peak
				}
			}
		}
		if _, most := e.Band(e.Most()); peak > most {
			note(noteLine, fmt.Sprintf("%s: %s at most, and %s expected, ±%d%%", name, sizeText(peak),
				sizeText(e.Most()), e.Tolerance))
		}
	}
	return lines
}

func (p *reportPart) fullest() string {
	now, peak, used := p.Arenas[0], p.Arenas[0], 0
	for _, a := range p.Arenas {
		if a.Used > now.Used {
			now = a
		}
		if a.Peak > peak.Peak {
			peak = a
		}
		if a.Used != 0 {
			used++
		}
	}
	text := fmt.Sprintf("%d of %d in use", used, len(p.Arenas))
	if now.Used != 0 {
		text += "; fullest: " + clip(now.Name, nameLetters)
	}
	if peak.Peak != 0 {
		text += "; highest peak: " + clip(peak.Name, nameLetters)
	}
	return text
}

// after returns the lines after the part's holders: its pools, its caches and other metrics.
func (p *reportPart) after() (lines []reportLine) {
	if chunks, most := p.Value("pool_chunks"), p.Value("pool_chunks_peak"); chunks != 0 {
		lines = append(lines, reportLine{kind: chunkLine, class: p.class, name: "pools, in chunks", of: chunks,
			alone: true, cells: cells{cellMost: {fmt.Sprint(most), most}, cellPlanned: {fmt.Sprint(chunks), chunks}},
			detail: fmt.Sprintf("open pools: %s chunks, %s in use at most", exact(chunks), exact(most))})
	}
	note := func(text string) { lines = append(lines, reportLine{kind: noteLine, class: p.class, name: text}) }
	hits, evicted := p.Value("cache_hits"), p.Value("cache_evictions")
	if reads := hits + p.Value("cache_misses"); reads+evicted != 0 {
		note(fmt.Sprintf("caches: %s of %s found, %s evicted", exact(hits), many(reads, "read"), exact(evicted)))
	}
	for _, f := range budget.Figures() {
		switch v := p.Value(f.Name); {
		case v == 0 || !f.Shown || placed[f.Name]:
		case f.Bytes:
			note(f.Name + " " + sizeText(v))
		default:
			note(f.Name + " " + exact(v))
		}
	}
	return lines
}

// placed are the metrics that other lines show.
var placed = map[string]bool{"arenas": true, "arenas_in_use": true, "size": true, "used": true, "arena_size": true,
	"arena_used": true,
	"arena_peak": true, "pool_chunks": true, "pool_chunks_peak": true, "cache_hits": true, "cache_misses": true,
	"cache_evictions": true, "fulls": true, "warnings": true}

// cHeap is the kind of the part that is C's malloc, and quota that of a quota.
const cHeap, quota = "c_heap", "quota"

// runtimeLines returns lines of the part for Go's runtime, and of requests larger than the heap.
func runtimeLines(c budget.CHeapReport, class string) (lines []reportLine) {
	note := func(text string) { lines = append(lines, reportLine{kind: noteLine, class: class, name: text}) }
	if c.RuntimePeak != 0 {
		note(fmt.Sprintf("for Go's runtime: now %s, at most %s, of %s", sizeText(c.RuntimeUsed),
			sizeText(c.RuntimePeak), sizeText(c.Runtime)))
	}
	if c.Larges != 0 {
		note(fmt.Sprintf("refused %s larger than the heap; last: %s bytes", many(c.Larges, "request"),
			exact(c.LastLarge)))
	}
	return lines
}

func heapLines(heap budget.GoHeap) []reportLine {
	if heap.Limit|heap.Used == 0 {
		return nil
	}
	line := reportLine{kind: partLine, class: "heap", name: "Go heap", of: heap.Limit,
		detail: fmt.Sprintf("Go heap: %s bytes now", exact(heap.Used))}
	line.inUse(heap.Used, true)
	text := "the plan sets no limit for it"
	if heap.Limit != 0 {
		line.cells[cellPlanned] = sized(heap.Limit)
		line.detail += ", of " + exact(heap.Limit)
		text = many(heap.Collections, "collection") + " since Open"
	}
	if heap.From != "" {
		text += "; the limit is " + heap.From
	}
	if heap.Halving != 0 {
		text += fmt.Sprintf("; a go_heap of %s would halve the collections", budget.SizeText(heap.Halving))
	}
	lines := []reportLine{line, {kind: noteLine, class: "heap", name: text}}
	for _, move := range heap.Moves {
		lines = append(lines, reportLine{kind: noteLine, class: "heap", name: move})
	}
	return lines
}

// residentLines returns lines of the resident memory that no other line has.
func residentLines(o budget.Outside) (lines []reportLine) {
	note := func(text string) { lines = append(lines, reportLine{kind: noteLine, name: text}) }
	switch {
	case o.Unknown != "":
		note("memory that no plan has isn't known: " + o.Unknown)
		return lines
	case o.Process == 0: // a report of an earlier version
		return nil
	}
	line := reportLine{kind: sumLine, class: "other", name: "resident, of no plan"}
	line.cells[cellNow] = sized(o.Bytes)
	lines = append(lines, line)
	text := "the process has " + sizeText(o.Process) + " resident"
	if o.Error != 0 {
		text += "; at most " + sizeText(o.Error) + " of the bytes of no plan may be Go's"
	}
	note(text)
	for _, holder := range o.Largest {
		note("of them " + holder)
	}
	return lines
}

func proxyLines(r budget.Report) (lines []reportLine) {
	var list []holder
	most, refused := uint64(0), uint64(0)
	for _, x := range r.Proxies {
		list = append(list, holder{name: x.Name, bytes: x.Asked, peak: x.Peak, objects: x.Live})
		most, refused = max(most, x.Asked, x.Peak), refused+x.Failed
	}
	lines = holders(list, "proxy", "c1", most, true)
	if refused != 0 {
		lines = append(lines, reportLine{kind: badLine, name: "proxies refused " + many(refused, "request")})
	}
	return lines
}

func badLines(r budget.Report) (lines []reportLine) {
	said := func(kind lineKind, head string, list []string, count int) {
		for i, text := range list {
			if i == namesShown {
				break
			}
			lines = append(lines, reportLine{kind: kind, name: head + text})
		}
		if more := count - min(len(list), namesShown); more > 0 {
			lines = append(lines, reportLine{kind: kind, name: fmt.Sprintf("%sand %d more", head, more)})
		}
	}
	said(noteLine, "not granted: ", r.NotGranted, len(r.NotGranted))
	said(badLine, "error: ", r.Errors, max(r.ErrorCount, len(r.Errors)))
	if l := r.Leaks; l != (budget.Leaks{}) {
		lines = append(lines, reportLine{kind: badLine, name: fmt.Sprintf(
			"leaks: %d scopes, %d owned values, %d finalizers failed, %d slots, %d leases of scratch, %d blocks",
			l.Scopes, l.Owned, l.Finalizers, l.Slots, l.Scratch, l.Blocks)})
	}
	return lines
}

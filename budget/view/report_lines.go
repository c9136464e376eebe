package view

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/upfront-mem/upfront/budget"
)

// figures are bytes, or chunks: what is used now, what was at most, and what there is.
type figures struct{ now, peak, size uint64 }

// texts are the figures as sizes.
func (f figures) texts() [3]string {
	return [3]string{sizeText(f.now), sizeText(f.peak), sizeText(f.size)}
}

func (f *figures) add(now, peak, size uint64) {
	f.now, f.peak, f.size = sum(f.now, now), sum(f.peak, peak), sum(f.size, size)
}

// barred says that it has a bar and figures.
func (l reportLine) barred() bool {
	return l.kind != headLine && l.kind != noteLine && l.kind != badLine
}

// summed says that its peak is a sum of several.
func (l reportLine) summed() bool { return l.peak != 0 && (l.fence != nil || l.kind == chunkLine) }

// shown is the name as there is room for it: of a label or a scope, what it is stands before.
func (l reportLine) shown() string { return clip(l.name, nameLetters+len("scope ")) }

// sum is what a report may say that nobody checked, at most.
func sum(a, b uint64) uint64 {
	total, carry := bits.Add64(a, b, 0)
	return total | -carry
}

// lineKind is how a line of a report looks.
type lineKind int

const (
	headLine  lineKind = iota // a name before others
	partLine                  // a part of the plan
	nameLine                  // who holds some of it
	chunkLine                 // its pools
	sumLine                   // figures alone
	noteLine                  // a text, of a part where it has a class
	badLine                   // a text about what went wrong
)

// reportLine is a line of a report, as a picture and as text.
type reportLine struct {
	kind  lineKind
	class string // its colour
	name  string
	figures
	of     uint64                // what fills its bar: the part's size
	stack  []stacked             // of a part, who holds what is used now
	fence  []budget.RegionReport // of a part, its arenas, where it has some
	texts  [3]string             // its figures as they are written: now, at most, planned
	detail string                // to the byte
}

// stacked is what somebody holds of a part.
type stacked struct {
	class string
	size  uint64
}

// reportLines are all lines of a report.
func reportLines(r budget.Report) (lines []reportLine) {
	rest := r.Size
	for _, p := range allParts(r) {
		lines = append(lines, p.lines()...)
		rest -= min(rest, p.size)
	}
	summed := slices.ContainsFunc(lines, reportLine.summed)
	lines = append(lines, reportLine{kind: sumLine, class: "other pale", name: "tables, edges, guards", texts: [3]string{2: sizeText(rest)}})
	if summed {
		lines = append(lines, reportLine{kind: noteLine, name: "at most: of slots, buffers, scratch arenas and pools it is the sum of their " +
			"peaks, which needn't have been at one time"})
	}
	lines = append(lines, heapLines(r.GoHeap)...)
	lines = append(lines, proxyLines(r)...)
	return append(lines, badLines(r)...)
}

// reportPart is a region, all slots of one, the frame, or all scratch arenas.
type reportPart struct {
	class, name string
	arenas      []budget.RegionReport
	figures
}

// allParts puts siblings together: "room 0" and "room 1" are the part "room".
func allParts(r budget.Report) (parts []*reportPart) {
	for _, arena := range slices.Concat(r.Regions, r.Beside) {
		name := budget.RegionOf(arena.Name)
		last := len(parts) - 1
		if last < 0 || name == arena.Name || parts[last].name != name {
			parts = append(parts, &reportPart{class: classOf(arena.Name), name: name})
			last++
		}
		p := parts[last]
		p.arenas = append(p.arenas, arena)
		p.add(arena.Used, arena.Peak, arena.Size)
	}
	return parts
}

// namesShown is how many scopes, labels, proxies or faults have a line of their own.
const namesShown = 8

// lines are the part's own line, then who holds what of it.
func (p *reportPart) lines() []reportLine {
	labels, scopes := p.usage("label"), p.usage("scope")
	own := reportLine{kind: partLine, class: p.class, name: p.name, figures: p.figures, of: p.size, texts: p.figures.texts(),
		detail: arenaText(p.name, p.figures)}
	if len(p.arenas) > 1 {
		own.fence = p.arenas
	}
	if len(labels) != 0 {
		labels = append(labels, p.unlabelled(labels)...)
		own.stack = coloured(labels)
		for i := range scopes {
			scopes[i].class = "other"
		}
	} else {
		own.stack = coloured(scopes)
	}
	return slices.Concat([]reportLine{own}, p.fullest(), p.fulls(), labels, scopes, p.pools())
}

// holder is who holds bytes: a label, a scope, a proxy.
type holder struct {
	name                 string
	bytes, peak, objects uint64
}

// mostFirst sorts by what is held, then by what was.
func mostFirst(list []holder) {
	slices.SortStableFunc(list, func(a, b holder) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(b.peak, a.peak), cmp.Compare(a.name, b.name))
	})
}

// holders are the lines of a list: a few have their own. Those of the others weren't at their peaks at one time: only what
// they hold now has a sum.
func holders(list []holder, kind, class string, of uint64) (lines []reportLine) {
	mostFirst(list)
	for i, h := range list {
		if i == namesShown {
			line := reportLine{kind: nameLine, class: "other", name: "and " + many(len(list)-i, kind) + " more", of: of}
			for _, h := range list[i:] {
				line.now = sum(line.now, h.bytes)
			}
			line.texts[0], line.detail = sizeText(line.now), fmt.Sprintf("%s: %s bytes now", line.name, exact(line.now))
			return append(lines, line)
		}
		objects := ""
		if h.objects != 0 {
			objects = " in " + many(h.objects, "object")
		}
		lines = append(lines, reportLine{kind: nameLine, class: class, name: kind + " " + h.name, figures: figures{h.bytes, h.peak, 0}, of: of,
			texts:  [3]string{sizeText(h.bytes), sizeText(h.peak)},
			detail: fmt.Sprintf("%s %s: %s bytes now%s, %s at most", kind, h.name, exact(h.bytes), objects, exact(h.peak))})
	}
	return lines
}

// arenaText is what a bar shows, to the byte.
func arenaText(name string, f figures) string {
	return fmt.Sprintf("%s: %s bytes now, %s at most, of %s", name, exact(f.now), exact(f.peak), exact(f.size))
}

// usage is what the part's scopes, or labels, hold and held, by name.
func (p *reportPart) usage(kind string) []reportLine {
	var list []holder
	at := map[string]int{}
	for _, arena := range p.arenas {
		names := arena.Labels
		if kind == "scope" {
			names = arena.Scopes
		}
		for _, u := range names {
			name := u.Name
			if kind == "scope" {
				name = arena.ScopeName(name)
			}
			i, known := at[name]
			switch {
			case u.Bytes|u.Peak == 0:
			case known:
				h := &list[i]
				h.bytes, h.peak, h.objects = sum(h.bytes, u.Bytes), sum(h.peak, u.Peak), sum(h.objects, u.Objects)
			default:
				at[name] = len(list)
				list = append(list, holder{name, u.Bytes, u.Peak, u.Objects})
			}
		}
	}
	return holders(list, kind, p.class, p.size)
}

// coloured gives lines a colour each, if several hold something, and the same to their shares of the part.
func coloured(lines []reportLine) (stack []stacked) {
	holding := 0
	for _, l := range lines {
		if l.now != 0 {
			holding++
		}
	}
	for i := range lines {
		if lines[i].class != "other" && holding > 1 {
			lines[i].class = colour(i)
		}
		stack = append(stack, stacked{lines[i].class, lines[i].now})
	}
	return stack
}

// unlabelled is what is used and has no label.
func (p *reportPart) unlabelled(labels []reportLine) []reportLine {
	rest := p.now
	for _, l := range labels {
		rest -= min(rest, l.now)
	}
	if rest == 0 {
		return nil
	}
	return []reportLine{{kind: nameLine, class: "other", name: "no label", figures: figures{now: rest}, of: p.size,
		texts: [3]string{sizeText(rest)}, detail: "no label: " + exact(rest) + " bytes now"}}
}

// fullest says which arena of several is.
func (p *reportPart) fullest() []reportLine {
	if len(p.arenas) == 1 {
		return nil
	}
	now, peak, used := p.arenas[0], p.arenas[0], 0
	for _, a := range p.arenas {
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
	text := fmt.Sprintf("%d of %d in use", used, len(p.arenas))
	if now.Used != 0 {
		text += fmt.Sprintf("; the fullest: %s, %s of %s", clip(now.Name, nameLetters), sizeText(now.Used), sizeText(now.Size))
	}
	if peak.Peak != 0 {
		text += fmt.Sprintf("; ever: %s, %s", clip(peak.Name, nameLetters), sizeText(peak.Peak))
	}
	return []reportLine{{kind: noteLine, class: p.class, name: text}}
}

// fulls say how often something didn't fit, and what an arena told of it last.
func (p *reportPart) fulls() []reportLine {
	count, last := uint64(0), ""
	for _, a := range p.arenas {
		count = sum(count, uint64(max(0, a.Fulls)))
		if a.LastFull != "" {
			last = "; lately " + a.LastFull
		}
	}
	if count == 0 && last == "" {
		return nil
	}
	return []reportLine{{kind: badLine, class: p.class, name: "full " + many(count, "time") + last}}
}

// pools are the chunks of the pools that are open.
func (p *reportPart) pools() []reportLine {
	line := reportLine{kind: chunkLine, class: p.class, name: "pools, in chunks"}
	for _, a := range p.arenas {
		line.add(0, a.PoolPeak, a.PoolCap)
	}
	if line.size == 0 {
		return nil
	}
	line.of, line.texts = line.size, [3]string{1: fmt.Sprint(line.peak), 2: fmt.Sprint(line.size)}
	line.detail = fmt.Sprintf("pools that are open: %s chunks, %s in use at most", exact(line.size), exact(line.peak))
	return []reportLine{line}
}

// heapLines are the Go runtime's memory.
func heapLines(heap budget.GoHeap) []reportLine {
	if heap.Limit|heap.Used == 0 {
		return nil
	}
	line := reportLine{kind: partLine, class: "heap", name: "Go heap", figures: figures{heap.Used, 0, heap.Limit}, of: heap.Limit,
		texts: [3]string{sizeText(heap.Used)}, detail: fmt.Sprintf("Go heap: %s bytes now", exact(heap.Used))}
	text := "nothing is planned for it"
	if heap.Limit != 0 {
		line.texts[2] = sizeText(heap.Limit)
		line.detail += ", of " + exact(heap.Limit)
		text = many(heap.Collections, "collection") + " since Open"
	}
	return []reportLine{{kind: headLine, name: "beside it"}, line, {kind: noteLine, class: "heap", name: text}}
}

// proxyLines are the clients of allocators.
func proxyLines(r budget.Report) (lines []reportLine) {
	if len(r.Proxies) == 0 {
		return nil
	}
	var list []holder
	most, refused := uint64(0), uint64(0)
	for _, x := range r.Proxies {
		list = append(list, holder{x.Name, x.Asked, x.Peak, x.Live})
		most, refused = max(most, x.Asked, x.Peak), sum(refused, x.Failed)
	}
	lines = append([]reportLine{{kind: headLine, name: "proxies"}}, holders(list, "proxy", "c1", most)...)
	if refused != 0 {
		lines = append(lines, reportLine{kind: badLine, name: many(refused, "request") + " of proxies refused"})
	}
	return lines
}

// badLines are what went wrong.
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
			"leaks: %d scopes, %d owned values, %d finalizers failed, %d slots, %d pairs of scratch arenas, %d blocks",
			l.Scopes, l.Owned, l.Finalizers, l.Slots, l.Scratch, l.Blocks)})
	}
	if len(lines) != 0 {
		lines = append([]reportLine{{kind: headLine, name: "to be known"}}, lines...)
	}
	return lines
}

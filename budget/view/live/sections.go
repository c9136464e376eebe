package live

import (
	"cmp"
	_ "embed"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

var (
	//go:embed page.html
	pageForm markup
	//go:embed main.html
	mainForm markup
	//go:embed region.html
	regionForm markup
)

// size is a number of bytes: short, and exact for who points at it.
func size(bytes uint64) markup {
	return `<data value="` + decimal(bytes) + `" title="` + grouped(bytes) + ` bytes">` + text(budget.SizeText(bytes)) + "</data>"
}

func count(n uint64) markup { return `<data value="` + decimal(n) + `">` + grouped(n) + "</data>" }

// bar is how much of a whole is in use, and was.
func bar(used, peak, whole uint64) markup {
	return `<svg class="bar" aria-hidden="true"><rect class="peak" width="` + share(max(used, peak), whole) +
		`%" height="100%"/><rect class="used" width="` + share(used, whole) + `%" height="100%"/></svg>`
}

// page is all of it.
func (f *figures) page(main markup) markup {
	return fill(pageForm, "{name}", text(f.Report.Name), "{main}", main,
		"{time}", when(f.Timed, `<a href="#time">Over time</a>`+"\n"),
		"{links}", each(f.Links, func(l Link) markup {
			return `<a href="` + address(l.Path) + `">` + text(l.Name) + "</a>\n"
		}))
}

// main is what changes.
func (f *figures) main() markup {
	heap, fulls, leaks := f.Report.GoHeap, markup("never"), markup("none")
	if f.Fulls != 0 {
		fulls = `<a href="#trouble"><data value="` + decimal(f.Fulls) + `">` + many(f.Fulls, "time") + "</data></a>"
	}
	if n := f.LeakCount(); n != 0 {
		leaks = `<a href="#trouble">` + count(natural(n)) + "</a>"
	}
	return fill(mainForm, "{moment}", decimal(f.Moment), "{used}", size(f.Used), "{planned}", size(f.Report.Size),
		"{heap}", size(heap.Used)+when(heap.Limit != 0, " <small>of "+size(heap.Limit)+"</small>"),
		"{collections}", count(uint64(heap.Collections)), "{fulls}", fulls, "{leaks}", leaks,
		"{map}", each(f.Map, stripe.drawn), "{parts}", each(f.Parts, func(p part) markup {
			return `<li><span class="swatch ` + class(p.Kind) + `"></span>` + text(p.Name) + " " + size(p.Value("size")) + "</li>\n"
		}),
		"{regions}", each(f.Parts, part.article), "{beside}", f.beside()+f.pools()+f.proxies(), "{trouble}", f.trouble(),
		"{time}", when(f.Timed, overTime), "{files}", when(f.Timed, timeFiles))
}

const overTime = `<section id="time" aria-labelledby="time-title">
<h2 id="time-title">Over time</h2>
<div class="picture" tabindex="0" role="region" aria-label="Picture of the time" data-keep><img src="timeline.svg" loading="lazy" alt="What each part held over time; timeline.csv has the numbers"></div>
</section>

`

const timeFiles = `<li><a href="timeline.csv" download>timeline.csv</a> the most of each arena in each sample</li>
<li><a href="timeline.svg" download>timeline.svg</a> the same as a picture</li>
`

// article is what a region has.
func (p part) article() markup {
	if !p.isRegion() {
		return ""
	}
	slots, most, fence := markup(""), markup("at once"), markup("")
	used, peak, whole := p.Value("used"), p.Value("arena_peak"), p.Value("size")
	shown := peak
	if p.Kind == "slot" {
		all, loaded := many(len(p.Arenas), "slot"), decimal(p.Value("arenas_in_use"))
		slots = " <small>" + all + " of " + size(p.Value("arena_size")) + ", " + loaded + " in use</small>"
		most, shown = "in one", 0
		fence = `<div class="fence" role="img" aria-label="` + loaded + " of " + all +
			" in use; the fullest are in the table\">\n" + each(p.Fence, square.drawn) + "</div>\n" +
			when(p.Beyond != 0, `<p class="note">A square is the fullest of `+many(p.Beyond+1, "slot")+".</p>\n")
	}
	return fill(regionForm, "{name}", text(p.Name), "{slots}", slots, "{bar}", bar(used, shown, whole),
		"{used}", size(used), "{most}", most, "{peak}", size(peak), "{free}", size(rest(used, whole)), "{whole}", size(whole),
		"{fence}", fence, "{holders}", p.holders("label", p.Labels, p.Rest)+p.holders("scope", p.Scopes, 0),
		"{tables}", p.lines()+p.fullest()+p.others())
}

// others are the figures that have no place of their own.
func (p part) others() markup {
	t := newTable("Other figures", column{"", "Figure"}, column{"n", "Value"}, column{"text", "What it says"})
	for _, f := range budget.Figures() {
		if v := p.Value(f.Name); v != 0 && f.Shown && !placed[f.Name] {
			value := count(v)
			if f.Unit == budget.Bytes {
				value = size(v)
			}
			t.row(named("", text(f.Name)), value, text(f.Help))
		}
	}
	return t.end()
}

// placed are the figures that the page shows elsewhere.
var placed = map[string]bool{"arenas": true, "arenas_in_use": true, "size": true, "used": true, "arena_size": true, "arena_used": true,
	"arena_peak": true, "pool_chunks": true, "pool_chunks_peak": true, "fulls": true}

// holders is who holds a part, by label or by scope, and the rest, which is in none of them.
func (p part) holders(what markup, l list[scope.Usage], rest uint64) markup {
	things, most := column{"n extra", ""}, column{"n", "Most"}
	for _, h := range l.First {
		if h.Objects != 0 {
			things.name = "Things"
		}
	}
	if p.Kind == "slot" {
		most.name = "Most in one"
	}
	t := newTable("By "+what, column{"", "Name"}, column{"wide", unseen("Part of the region")}, column{"n", "Now"}, things, most)
	for _, h := range l.First {
		t.row(named("", text(h.Name)), bar(h.Bytes, 0, p.Value("size")), size(h.Bytes), count(h.Objects), size(h.Peak))
	}
	t.more(l.More, bar(l.Bytes, 0, p.Value("size")), size(l.Bytes), "", "")
	if rest != 0 {
		t.rest("no "+what, bar(rest, 0, p.Value("size")), size(rest), "", "")
	}
	return t.end()
}

// lines are those of the program.
func (p part) lines() markup {
	t := newTable("By line of the program that made it", column{"", "Line"}, column{"wide extra", unseen("Part of the region")},
		column{"text", "Label"}, column{"n", "Now"}, column{"n extra", "Things"})
	for _, l := range p.Lines.First {
		t.row(named(` title="`+text(l.Whole)+`"`, text(cmp.Or(l.At, "not known"))),
			bar(l.Bytes, 0, p.Value("size")), text(l.Label), size(l.Bytes), count(l.Count))
	}
	t.more(p.Lines.More, bar(p.Lines.Bytes, 0, p.Value("size")), "", size(p.Lines.Bytes), "")
	return t.end()
}

func (p part) fullest() markup {
	t := newTable("The fullest slots", column{"", "Slot"}, column{"wide", unseen("Part of its size")},
		column{"n", "In use"}, column{"n", "Most at once"}, column{"n extra", "Free"})
	for _, x := range p.Fullest {
		t.row(arena(x.Name), bar(x.Used, x.Peak, x.Size), size(x.Used), size(x.Peak), size(x.Free))
	}
	return t.end()
}

// beside is about the frame's buffers and scratch.
func (f *figures) beside() markup {
	t := newTable("Buffers of the frame and scratch arenas that were ever used", column{"", "Arena"},
		column{"wide", unseen("Part of its size")}, column{"n", "In use"}, column{"n", "Most at once"}, column{"n extra", "Of"})
	for _, x := range f.Beside.First {
		t.row(arena(x.Name), bar(x.Used, x.Peak, x.Size), size(x.Used), size(x.Peak), size(x.Size))
	}
	t.more(f.Beside.More, "", size(f.Beside.Bytes), "", "")
	return cmp.Or(t.end(), "<p>No frame and no scratch was used yet.</p>\n")
}

func (f *figures) pools() markup {
	t := newTable("Pools that are open: chunks, of all pools of a part together", column{"", "Part"},
		column{"wide", unseen("Part of its chunks")}, column{"n", "Most in use"}, column{"n", "Of"})
	for _, p := range f.Parts {
		if chunks, most := p.Value("pool_chunks"), p.Value("pool_chunks_peak"); chunks|most != 0 {
			t.row(named("", text(p.Name)), bar(0, most, chunks), count(most), count(chunks))
		}
	}
	return t.end()
}

func (f *figures) proxies() markup {
	t := newTable("Proxies: what each client has of an allocator", column{"", "Client"}, column{"n", "Live"},
		column{"n", "In use"}, column{"n", "Most at once"}, column{"n", "Refused"})
	for _, x := range f.Report.Proxies {
		t.row(named("", text(x.Name)), count(x.Live), size(x.Asked), size(x.Peak), count(x.Failed))
	}
	return t.end()
}

// trouble is what was full, refused or leaked, and what failed.
func (f *figures) trouble() markup {
	full := newTable("Since the budget was opened; of each arena the last full", column{"", "Arena"}, column{"n", "Times"},
		column{"text", "The last one"})
	for _, x := range f.Full.First {
		full.row(arena(x.Name), count(natural(x.Fulls)), text(x.LastFull))
	}
	full.more(f.Full.More, "", "")
	leaks := newTable("What should have ended, and has not", column{"", "What"}, column{"n", "Count"})
	for _, l := range f.Leaks {
		leaks.row(named("", text(l.Name)), count(natural(l.Count)))
	}
	r := f.Report
	return when(f.Calm(), "<p>Nothing was full, nothing leaked, no finalizer failed, and the system granted what the plan wishes.</p>\n") +
		when(full.some, "<h3>What was full</h3>\n"+full.end()) +
		when(len(r.NotGranted) != 0, "<h3>What the system refused</h3>\n<ul>\n"+each(r.NotGranted, item)+"</ul>\n") +
		when(r.ErrorCount != 0, "<h3>"+many(r.ErrorCount, "error")+" of finalizers</h3>\n<ul>\n"+each(r.Errors, item)+"</ul>\n") +
		when(leaks.some, "<h3>Leaks</h3>\n"+leaks.end())
}

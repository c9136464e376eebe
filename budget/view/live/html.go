package live

import (
	_ "embed"
	"html"
	"net/url"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/view"
)

// Package html/template would make the linker keep each method of the program. In frogpond that is
// 11 MB, 4 of them resident, for a page that may have no viewers.

// markup is HTML: a constant, or a name that text has escaped.
type markup string

var (
	//go:embed page.html
	pageForm markup
	//go:embed main.html
	mainForm markup
)

// text escapes a name for HTML, between tags and in attributes.
func text(s string) markup { return markup(html.EscapeString(s)) }

// address returns the target of a link, or "#" for a wrong one or a scheme other than http and
// https.
func address(s string) markup {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https" {
		return "#"
	}
	return text(u.String())
}

// fill returns the form with its names in braces replaced. parts are names and their replacements
// in turn.
func fill(form markup, parts ...markup) markup {
	all, size := make([]string, len(parts)), len(form)
	for i, p := range parts {
		all[i] = string(p)
		size += len(p)
	}
	var out strings.Builder
	out.Grow(size)
	_, _ = strings.NewReplacer(all...).WriteString(&out, string(form)) // a builder never fails
	return markup(out.String())
}

func when(yes bool, m markup) markup {
	if yes {
		return m
	}
	return ""
}

func size(bytes uint64) markup {
	return `<data value="` + decimal(bytes) + `">` + text(budget.SizeText(bytes)) + "</data>"
}

func decimal(n uint64) markup { return markup(strconv.FormatUint(n, 10)) }

// count returns a number of faults as a data element. A negative number, as in a forged report, is
// 0.
func count(n int) markup {
	return `<data value="` + decimal(uint64(max(0, n))) + `">` + decimal(uint64(max(0, n))) + "</data>"
}

func pageOf(r budget.Report, main markup, links []Link, timed bool) markup {
	var all markup
	for _, l := range links {
		all += `<a href="` + address(l.Path) + `">` + text(l.Name) + "</a>\n"
	}
	return fill(pageForm, "{name}", text(r.Name), "{main}", main,
		"{time}", when(timed, `<a href="#time">Over time</a>`+"\n"), "{links}", all)
}

// mainOf returns the part of a page that changes.
func mainOf(r budget.Report, number uint64, timed bool) (markup, error) {
	parts, err := drawn(view.ReportHTML, r)
	used, fulls := uint64(0), uint64(0)
	for _, p := range r.Parts() {
		used += p.Value("used")
		fulls += p.Value("fulls")
	}
	l, heap := r.Leaks, r.GoHeap
	return fill(mainForm, "{moment}", decimal(number), "{used}", size(used), "{planned}", size(r.Size),
		"{heap}", size(heap.Used)+when(heap.Limit != 0, " <small>of "+size(heap.Limit)+"</small>"),
		"{collections}", count(int(heap.Collections)), "{fulls}", count(int(fulls)), "{errors}", count(r.ErrorCount),
		"{leaks}", count(l.Scopes+l.Owned+l.Finalizers+l.Slots+l.Scratch+l.Blocks), "{parts}", markup(parts),
		"{time}", when(timed, overTime), "{files}", when(timed, timeFiles)), err
}

const overTime = `<section id="time" aria-labelledby="time-title">
<h2 id="time-title">Over time</h2>
<div class="picture" tabindex="0" role="region" aria-label="Picture of memory over time" data-keep><img src="timeline.svg" loading="lazy" alt="The memory of each part over time; timeline.csv has the numbers"></div>
</section>

`

const timeFiles = `<li><a href="timeline.csv" download>timeline.csv</a> the most of each arena in each sample</li>
<li><a href="timeline.svg" download>timeline.svg</a> the same as a picture</li>
`

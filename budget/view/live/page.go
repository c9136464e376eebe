package live

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"time"

	"github.com/upfront-mem/upfront/budget"
)

// Options is what a page shows beside the budget's own figures.
type Options struct {
	Timeline *budget.Timeline     // use over time; nil: the page has none
	Links    []Link               // of the page's head, in this order
	Hosts    []string             // names that the server is known by, beside localhost and addresses (Guard)
	Viewers  int                  // who sees changes as they come; 0: 32. The others' pages ask now and then
	Every    time.Duration        // at least, between two readings of the figures; 0: 250 ms
	Report   func() budget.Report // in place of Budget.Published: for who adds proxies. Any goroutine calls it, one at a time
}

// Link is another page of the program, or a file: a room, a profile.
type Link struct {
	Name string // as it is shown: "profile"
	Path string // relative to the page, from the server's root, as "/debug/pprof/heap", or http: or https:; others lead nowhere
}

// Page shows a budget. It is made by New.
type Page struct {
	o       Options
	handler http.Handler
	feed    *Feed
	now     recent[*moment]
	past    recent[*past]
	answers map[string]http.Handler // by path
}

const timelinePace = 2 * time.Second // Timeline.Read copies all samples

// New makes a page of a budget. It lives until Close, and may outlive the budget: then it shows the last figures.
func New(b *budget.Budget, o Options) *Page {
	o.Every = cmp.Or(o.Every, feedPace)
	if o.Report == nil {
		o.Report = b.Published
	}
	p := &Page{o: o}
	p.now = recent[*moment]{every: o.Every, make: p.next}
	p.past = recent[*past]{every: max(o.Every, timelinePace), make: func() *past { return newPast(o.Timeline.Read()) }}
	p.feed = NewFeed(p.changes, FeedOptions{Every: o.Every, Viewers: o.Viewers})
	p.answers = p.routes()
	p.handler = Guard(http.HandlerFunc(p.route), o.Hosts...)
	return p
}

// next is the moment after the last one.
func (p *Page) next() *moment {
	number := uint64(1)
	if last := p.now.value; last != nil {
		number = last.number + 1
	}
	return newMoment(number, p.o.Report(), p.o.Links, p.o.Timeline != nil)
}

// moment is what is shown now.
func (p *Page) moment() *moment {
	m, _ := p.now.get()
	return m
}

func (p *Page) timeline() *past {
	past, _ := p.past.get()
	return past
}

// changes is what the feed sends: the page's main part.
func (p *Page) changes() []byte {
	main, _ := p.moment().main() // a buffer takes all
	return []byte(main)
}

// ServeHTTP answers a request for the page, below whatever path it is mounted.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

func (p *Page) route(w http.ResponseWriter, r *http.Request) {
	if h := p.answers[strings.TrimPrefix(r.URL.Path, "/")]; h != nil {
		h.ServeHTTP(w, r)
		return
	}
	http.NotFound(w, r)
}

// routes are all paths that there are.
func (p *Page) routes() map[string]http.Handler {
	all := map[string]http.Handler{
		"":            made("text/html; charset=utf-8", func() ([]byte, error) { return p.moment().page() }),
		"report.json": made("application/json", func() ([]byte, error) { return p.moment().json() }),
		"map.svg":     made("image/svg+xml", func() ([]byte, error) { return p.moment().picture() }),
		"page.css":    kept("text/css; charset=utf-8", "page.css"),
		"page.js":     kept("text/javascript; charset=utf-8", "page.js"),
		"icon.svg":    kept("image/svg+xml", "icon.svg"),
		"events":      p.feed,
	}
	if p.o.Timeline != nil {
		all["timeline.json"] = made("application/json", func() ([]byte, error) { return p.timeline().json() })
		all["timeline.svg"] = made("image/svg+xml", func() ([]byte, error) { return p.timeline().picture() })
		all["timeline.csv"] = made("text/csv; charset=utf-8", func() ([]byte, error) { return p.timeline().csv() })
	}
	return all
}

// Close ends the streams of events ([Feed.Close]). Other requests are still answered.
func (p *Page) Close() { p.feed.Close() }

// made answers with what is of this moment.
func made(kind string, text func() ([]byte, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := text()
		if err != nil {
			http.Error(w, fmt.Sprintf("can't be shown: %v", err), http.StatusInternalServerError)
			return
		}
		reply(w, r, kind, answer)
	})
}

// kept answers with a file of the package. A browser asks each time whether it is still the same.
func kept(kind, name string) http.Handler {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	sum := fnv.New64a()
	_, _ = sum.Write(text) // a hash takes all
	tag := fmt.Sprintf(`"%x"`, sum.Sum64())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", tag)
		reply(w, r, kind, text)
	})
}

// reply answers a GET, a HEAD, or who has the text already.
func reply(w http.ResponseWriter, r *http.Request, kind string, text []byte) {
	w.Header().Set("Content-Type", kind)
	if kind == "image/svg+xml" { // its style is inside
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	}
	r.Header.Del("Range") // a thousand of them make an answer many times as long
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
}

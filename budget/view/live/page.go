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
	"github.com/upfront-mem/upfront/budget/timeline"
)

// Options are the contents and bounds of a page.
type Options struct {
	Timeline *timeline.Timeline // memory over time; nil for none
	Links    []Link             // the links in the page's head
	Hosts    []string           // further host names of the server, for Guard
	Viewers  int                // most streams at once; 0 is 32. Further pages poll
	Every    time.Duration      // least time between two readings; 0 is 250 ms
	// Report replaces Budget.Published, for a program that adds proxies. The page calls Report from
	// any goroutine, one at a time.
	Report func() budget.Report
}

// Link is a link to another page of the program, or to a file.
type Link struct {
	Name string // the shown text: "profile"
	// Path is relative to the page, or begins with the server's root ("/debug/pprof/heap"), http:
	// or https:. Links with other paths are disabled.
	Path string
}

// Page is the handler of a budget's page; New returns one.
type Page struct {
	o       Options
	handler http.Handler
	feed    *Feed
	now     recent[*moment]
	past    recent[*past]
	answers map[string]http.Handler // by path
}

const timelinePace = 2 * time.Second // Timeline.Read copies all samples

// New returns a page of a budget. The page also works after the budget's Close, with the last
// metrics.
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

func (p *Page) next() *moment {
	number := uint64(1)
	if last := p.now.value; last != nil {
		number = last.number + 1
	}
	return newMoment(number, p.o.Report(), p.o.Links, p.o.Timeline != nil)
}

func (p *Page) moment() *moment {
	m, _ := p.now.get()
	return m
}

func (p *Page) timeline() *past {
	past, _ := p.past.get()
	return past
}

// changes returns the page's main part, which the feed sends.
func (p *Page) changes() []byte {
	main, _ := p.moment().main() // a buffer never fails
	return []byte(main)
}

// ServeHTTP answers a request for the page, mounted at any path.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

func (p *Page) route(w http.ResponseWriter, r *http.Request) {
	if h := p.answers[strings.TrimPrefix(r.URL.Path, "/")]; h != nil {
		h.ServeHTTP(w, r)
		return
	}
	http.NotFound(w, r)
}

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

// Close ends the streams of events as [Feed.Close] does. Other requests still get answers.
func (p *Page) Close() { p.feed.Close() }

// made returns a handler that answers with a text of the current moment.
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

// kept returns a handler that answers with a file of the package. A browser checks each time that
// its copy is current.
func kept(kind, name string) http.Handler {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	sum := fnv.New64a()
	_, _ = sum.Write(text) // a hash never fails
	tag := fmt.Sprintf(`"%x"`, sum.Sum64())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", tag)
		reply(w, r, kind, text)
	})
}

// reply answers a GET or a HEAD, with status 304 if the client has the text already.
func reply(w http.ResponseWriter, r *http.Request, kind string, text []byte) {
	w.Header().Set("Content-Type", kind)
	if kind == "image/svg+xml" { // its style is inside
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	}
	r.Header.Del("Range") // a thousand of them make an answer many times as long
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
}

package live

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"net/http"
	"path"
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
	Viewers  int                // most streams at once, up to 65536; 0 is 32. Further pages poll
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
	handler http.Handler
	feed    *Feed
	now     recent[moment]
	past    recent[texts]
	answers map[string]http.Handler // by path
}

const timelinePace = 2 * time.Second // Timeline.Read copies all samples

// New returns a page of a budget. The page also works after the budget's Close, with the last
// metrics. New panics if an option is out of range.
func New(b *budget.Budget, o Options) *Page {
	o.Every = cmp.Or(o.Every, feedPace)
	if o.Report == nil {
		o.Report = b.Published
	}
	p := &Page{}
	number := uint64(0)
	p.now = recent[moment]{every: o.Every, make: func() moment {
		number++
		return newMoment(number, o.Report(), o.Links, o.Timeline != nil)
	}}
	p.past = recent[texts]{every: max(o.Every, timelinePace), make: func() texts { return pastOf(o.Timeline.Read()) }}
	p.feed = NewFeed(func() []byte {
		now, _ := p.now.get()
		main, _ := now.main() // a buffer never fails
		return []byte(main)
	}, FeedOptions{Every: o.Every, Viewers: o.Viewers})
	p.answers = p.routes(o.Timeline != nil)
	p.handler = Guard(http.HandlerFunc(p.route), o.Hosts...)
	return p
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

func (p *Page) routes(timed bool) map[string]http.Handler {
	all := map[string]http.Handler{"events": p.feed}
	for _, name := range []string{"page.css", "page.js", "icon.svg"} {
		all[name] = kept(name)
	}
	for _, name := range []string{"", "report.json", "map.svg"} {
		all[name] = made(name, func() texts {
			now, _ := p.now.get()
			return now.texts
		})
	}
	if timed {
		for _, name := range []string{"timeline.json", "timeline.svg", "timeline.csv"} {
			all[name] = made(name, func() texts {
				past, _ := p.past.get()
				return past
			})
		}
	}
	return all
}

// Close ends the streams of events as [Feed.Close] does. Other requests still get answers.
func (p *Page) Close() { p.feed.Close() }

// made returns a handler that answers with one of the current texts.
func made(name string, current func() texts) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := current()[name]()
		if err != nil {
			http.Error(w, fmt.Sprintf("can't be shown: %v", err), http.StatusInternalServerError)
			return
		}
		reply(w, r, name, answer)
	})
}

// kept returns a handler that answers with a file of the package. A browser checks each time that
// its copy is current.
func kept(name string) http.Handler {
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
		reply(w, r, name, text)
	})
}

// kinds are the content types of files, by the ends of their names.
var kinds = map[string]string{
	"":     "text/html; charset=utf-8",
	".css": "text/css; charset=utf-8", ".csv": "text/csv; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".json": "application/json", ".svg": "image/svg+xml",
}

// reply answers a GET or a HEAD, with status 304 if the client has the text already.
func reply(w http.ResponseWriter, r *http.Request, name string, text []byte) {
	w.Header().Set("Content-Type", kinds[path.Ext(name)])
	if path.Ext(name) == ".svg" { // its style is inside
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	}
	r.Header.Del("Range") // a thousand of them make an answer many times as long
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
}

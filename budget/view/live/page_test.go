package live_test

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/budget/view/live"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// ask returns a handler's answer to a request from this machine.
func ask(h http.Handler, method, path string, header ...string) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	r.Host = "127.0.0.1:7000"
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t testing.TB, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(text)
}

// paths are all paths of a page with a timeline, with their types.
var paths = map[string]string{
	"":              "text/html; charset=utf-8",
	"report.json":   "application/json",
	"map.svg":       "image/svg+xml",
	"timeline.json": "application/json",
	"timeline.csv":  "text/csv; charset=utf-8",
	"timeline.svg":  "image/svg+xml",
	"page.css":      "text/css; charset=utf-8",
	"page.js":       "text/javascript; charset=utf-8",
	"icon.svg":      "image/svg+xml",
}

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// TestEveryPath: each answer has the headers that browsers need.
func TestEveryPath(t *testing.T) {
	page := newPond(t).page(t, live.Options{})
	for path, kind := range paths {
		t.Run(path, func(t *testing.T) {
			r := ask(page, "GET", "/"+path)
			assert.Equal(t, http.StatusOK, r.StatusCode)
			assert.Equal(t, kind, r.Header.Get("Content-Type"))
			wanted := policy
			if strings.HasSuffix(path, ".svg") {
				wanted = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
			}
			assert.Equal(t, wanted, r.Header.Get("Content-Security-Policy"))
			assert.Equal(t, "nosniff", r.Header.Get("X-Content-Type-Options"))
			assert.Equal(t, "no-referrer", r.Header.Get("Referrer-Policy"))
			assert.Equal(t, "same-origin", r.Header.Get("Cross-Origin-Resource-Policy"))
			assert.Regexp(t, "^no-(store|cache)$", r.Header.Get("Cache-Control"))
			text := body(t, r)
			assert.NotEmpty(t, text)
			assert.Equal(t, strconv.Itoa(len(text)), r.Header.Get("Content-Length"))

			r = ask(page, "HEAD", "/"+path)
			assert.Equal(t, http.StatusOK, r.StatusCode)
			assert.Empty(t, body(t, r))
			for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"} {
				r = ask(page, method, "/"+path)
				assert.Equal(t, http.StatusMethodNotAllowed, r.StatusCode)
				assert.Equal(t, "GET, HEAD", r.Header.Get("Allow"))
			}
		})
	}
}

// TestNothingFromElsewhere: served files name no other server, except for SVG's namespace.
func TestNothingFromElsewhere(t *testing.T) {
	page := newPond(t).page(t, live.Options{})
	foreign := regexp.MustCompile(`(https?:)?//[a-zA-Z0-9.-]+\.[a-z]+[^\s"'<]*`)
	for path := range paths {
		text := body(t, ask(page, "GET", "/"+path))
		for _, name := range []string{hostile, url.QueryEscape(hostile)} { // allowed as data
			text = strings.ReplaceAll(text, name, "")
		}
		if path == "" || strings.HasSuffix(path, ".svg") || strings.HasSuffix(path, ".json") {
			assert.NotContains(t, strings.ToLower(text), "<script src=\"http")
			text = strings.NewReplacer("http://example.com/x.js", "", `xmlns="http://www.w3.org/2000/svg"`,
				"").Replace(text)
		}
		assert.Empty(t, foreign.FindAllString(text, -1), path)
	}
}

// TestUnchangedFiles: unchanged files aren't sent again.
func TestUnchangedFiles(t *testing.T) {
	page := newPond(t).page(t, live.Options{})
	r := ask(page, "GET", "/icon.svg")
	tag := r.Header.Get("ETag")
	require.NotEmpty(t, tag)
	assert.Equal(t, http.StatusNotModified, ask(page, "GET", "/icon.svg", "If-None-Match", tag).StatusCode)
	assert.Equal(t, http.StatusOK, ask(page, "GET", "/page.js", "If-None-Match", tag).StatusCode)
}

// TestWithoutTimeline: without a timeline the page doesn't mention one.
func TestWithoutTimeline(t *testing.T) {
	page := live.New(newPond(t).Budget, live.Options{})
	defer page.Close()
	for _, path := range []string{"timeline.json", "timeline.csv", "timeline.svg"} {
		assert.Equal(t, http.StatusNotFound, ask(page, "GET", "/"+path).StatusCode, path)
	}
	text := body(t, ask(page, "GET", "/"))
	assert.NotContains(t, text, "timeline")
}

// TestMounted: mounted at a path, all links of the page work.
func TestMounted(t *testing.T) {
	page := newPond(t).page(t,
		live.Options{Links: []live.Link{{Name: "the room", Path: "/room/0"},
			{Name: "bad", Path: "javascript:alert(1)"}}})
	link := regexp.MustCompile(`(?:href|src)="([^"#]+)"`)
	for _, prefix := range []string{"/memory", "/memory/", ""} {
		mux := http.NewServeMux()
		mux.Handle(strings.TrimSuffix(prefix, "/")+"/", http.StripPrefix(prefix, page))
		root := strings.TrimSuffix(prefix, "/") + "/"
		r := ask(mux, "GET", root)
		require.Equal(t, http.StatusOK, r.StatusCode, prefix)
		text := body(t, r)
		links := link.FindAllStringSubmatch(text, -1)
		assert.Greater(t, len(links), 8)
		for _, l := range links {
			if l[1] == "/room/0" || strings.HasPrefix(l[1], "#") {
				continue
			}
			assert.NotContains(t, l[1], "javascript:")
			if !strings.HasPrefix(l[1], "/") {
				assert.Equal(t, http.StatusOK, ask(mux, "GET", root+l[1]).StatusCode, "%s of %s", l[1], prefix)
			}
		}
		assert.Contains(t, text, `<a href="/room/0">the room</a>`)
	}
}

// node is an element of the page.
type node struct {
	name  string
	attr  map[string]string
	text  string // of all its contents
	nodes []*node
}

// parse parses a page, in which each element must end at the right place.
func parse(t testing.TB, text string) *node {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	root := &node{}
	stack := []*node{root}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch e := token.(type) {
		case xml.StartElement:
			n := &node{name: e.Name.Local, attr: map[string]string{}}
			for _, a := range e.Attr {
				_, twice := n.attr[a.Name.Local]
				assert.False(t, twice, "%s has %s twice", n.name, a.Name.Local)
				n.attr[a.Name.Local] = a.Value
			}
			top := stack[len(stack)-1]
			top.nodes = append(top.nodes, n)
			stack = append(stack, n)
		case xml.EndElement:
			require.Equal(t, stack[len(stack)-1].name, e.Name.Local)
			stack = stack[:len(stack)-1]
		case xml.CharData:
			for _, n := range stack {
				n.text += string(e)
			}
		}
	}
	require.Len(t, stack, 1, "all is closed")
	return root
}

// shape returns a line for each element and attribute.
func (n *node) shape() string {
	text := "<" + n.name + ">\n"
	for _, name := range slices.Sorted(maps.Keys(n.attr)) {
		text += name + "=" + n.attr[name] + "\n"
	}
	for _, child := range n.nodes {
		text += child.shape()
	}
	return text
}

// all returns the elements of that name below this one.
func (n *node) all(name string) (list []*node) {
	for _, child := range n.nodes {
		if child.name == name {
			list = append(list, child)
		}
		list = append(list, child.all(name)...)
	}
	return list
}

// by returns the element with an id.
func (n *node) by(id string) *node {
	for _, child := range n.nodes {
		if child.attr["id"] == id {
			return child
		}
		if found := child.by(id); found != nil {
			return found
		}
	}
	return nil
}

// numbers returns the exact numbers in an element.
func (n *node) numbers(t testing.TB) (list []uint64) {
	t.Helper()
	for _, d := range n.all("data") {
		value, err := strconv.ParseUint(d.attr["value"], 10, 64)
		require.NoError(t, err)
		list = append(list, value)
	}
	return list
}

// rows returns the numbers in the lines of all tables, by the lines' names.
func (n *node) rows(t testing.TB) map[string][]uint64 {
	t.Helper()
	rows := map[string][]uint64{}
	for _, body := range n.all("tbody") {
		for _, row := range body.all("tr") {
			name := row.all("th")[0].text
			require.NotContains(t, rows, name)
			rows[name] = row.numbers(t)
		}
	}
	return rows
}

// still returns a page of one report.
func still(t testing.TB, r budget.Report) *live.Page {
	t.Helper()
	page := live.New(nil, live.Options{Report: func() budget.Report { return r }})
	t.Cleanup(page.Close)
	return page
}

// TestNumbers: the page has the report's numbers to the byte.
func TestNumbers(t *testing.T) {
	r := newPond(t).Published()
	page := still(t, r)
	var read budget.Report
	require.NoError(t, json.Unmarshal([]byte(body(t, ask(page, "GET", "/report.json"))), &read))
	assert.Equal(t, len(r.Arenas), len(read.Arenas))
	root := parse(t, body(t, ask(page, "GET", "/")))

	for _, d := range root.all("data") {
		if title, ok := d.attr["title"]; ok {
			value, err := strconv.ParseUint(d.attr["value"], 10, 64)
			require.NoError(t, err)
			assert.Equal(t, budget.SizeText(value), d.text)
			assert.Equal(t, d.attr["value"]+" bytes", strings.ReplaceAll(title, ",", ""))
		}
	}

	for _, p := range r.Parts() {
		rows := root.by("part-" + p.Name).rows(t)
		// together returns the numbers of a row, with the sum of several arenas before them.
		together := func(sum uint64, numbers ...uint64) []uint64 {
			if len(p.Arenas) == 1 {
				return numbers
			}
			return append([]uint64{sum}, numbers...)
		}
		assert.LessOrEqual(t, p.Value("arena_used"), p.Value("arena_peak"), p.Name)
		assert.Equal(t, together(p.Value("used"), p.Value("arena_used"), p.Value("arena_peak"), p.Value("arena_size")),
			rows[p.Name], p.Name)
		rest := p.Value("used")
		for _, u := range p.Labels {
			assert.Equal(t, together(u.Bytes, u.ArenaBytes, u.Peak), rows["label "+u.Name], p.Name)
			rest -= u.Bytes
		}
		if len(p.Labels) != 0 {
			assert.Equal(t, []uint64{rest}, rows["no label"])
		}
		for _, u := range p.Scopes {
			if u.Bytes|u.Peak != 0 {
				assert.Equal(t, together(u.Bytes, u.ArenaBytes, u.Peak), rows["scope "+u.Name], p.Name)
			}
		}
		for i, x := range p.Arenas {
			if shown, there := rows[x.Name]; len(p.Arenas) > 1 && (there || i < 8 && x.Peak != 0) {
				assert.Equal(t, []uint64{x.Used, x.Peak, x.Size}, shown)
			}
		}
	}
	heads := root.all("dl")[0].all("dd")
	assert.Equal(t, []uint64{r.GoHeap.Used}, heads[1].numbers(t))
	assert.Equal(t, []uint64{1}, heads[3].numbers(t))
	assert.Equal(t, []uint64{1}, heads[4].numbers(t))
	full := r.Arenas[3]
	require.Equal(t, 1, full.Fulls)
	assert.Contains(t, root.by("part-level").text, "full 1 time; last: "+full.LastFull)
	assert.Contains(t, root.text, "a finalizer fails")
}

// slots returns the slots of a report.
func slots(r budget.Report) []budget.ArenaReport {
	return slices.DeleteFunc(slices.Clone(r.Arenas), func(a budget.ArenaReport) bool { return a.Kind != "slot" })
}

// TestLines: in checked builds the source lines have all bytes of their objects.
func TestLines(t *testing.T) {
	r := newPond(t).Published()
	checked := r.Arenas[0].Sites != nil
	for i := range r.Arenas {
		if !checked { // as a checked build would report
			used := r.Arenas[i].Used
			r.Arenas[i].Sites = []stack.Site{{Label: "map",
				Made:  []string{"pond.load /src/load.go:31", "main.main /src/main.go:7"},
				Bytes: used / 2, Objects: 3}, {Bytes: used - used/2}}
		}
	}
	root := parse(t, body(t, ask(still(t, r), "GET", "/")))
	all := uint64(0)
	for _, x := range slots(r) {
		all += x.Used
	}
	for part, used := range map[string]uint64{"systems": r.Arenas[0].Used, "level": all} {
		sum := uint64(0)
		for name, numbers := range root.by("part-" + part).rows(t) {
			if strings.HasPrefix(name, "line ") || regexp.MustCompile(`^and \d+ lines? more$`).MatchString(name) {
				sum += numbers[0]
				assert.NotContains(t, strings.ReplaceAll(name, hostile, ""), "/", "folders are in the title")
			}
		}
		assert.Equal(t, used, sum, part)
	}
	if !checked {
		assert.Contains(t, root.by("part-systems").rows(t), "line not known")
	}
}

// TestSemantics: the page works without sight: it has landmarks, and each element has its name.
func TestSemantics(t *testing.T) {
	root := parse(t, body(t, ask(newPond(t).page(t, live.Options{}), "GET", "/")))
	assert.Equal(t, "en", root.all("html")[0].attr["lang"])
	assert.Len(t, root.all("h1"), 1)
	assert.Len(t, root.all("main"), 1)
	ids := map[string]bool{}
	var visit func(n *node)
	visit = func(n *node) {
		if id := n.attr["id"]; id != "" {
			assert.False(t, ids[id], id)
			ids[id] = true
		}
		assert.NotContains(t, n.attr, "style", "the policy forbids it")
		for _, child := range n.nodes {
			visit(child)
		}
	}
	visit(root)
	for _, section := range root.all("section") {
		assert.True(t, ids[section.attr["aria-labelledby"]], section.attr["id"])
		assert.Len(t, section.all("h2"), 1)
	}
	for _, a := range root.all("a") {
		if id, local := strings.CutPrefix(a.attr["href"], "#"); local {
			assert.True(t, ids[id], id)
		}
		assert.NotEmpty(t, a.text)
	}
	for _, table := range root.all("table") {
		assert.NotEmpty(t, table.all("caption")[0].text)
		for _, th := range table.all("th") {
			assert.Regexp(t, "^(col|row)$", th.attr["scope"])
			assert.NotEmpty(t, strings.TrimSpace(th.text))
		}
		columns := len(table.all("thead")[0].all("th"))
		for _, row := range table.all("tbody")[0].all("tr") {
			assert.Len(t, append(row.all("th"), row.all("td")...), columns)
		}
	}
	for _, image := range root.all("img") {
		assert.NotEmpty(t, image.attr["alt"])
	}
}

// TestHostileNames: names stay text, between tags and in attributes; apart from the name, the page
// equals that of a harmless one.
func TestHostileNames(t *testing.T) {
	const harmless = "harmless"
	shown := func(name string) string {
		usage := []scope.Usage{{Name: name, Bytes: 100, Peak: 200, Objects: 3}}
		region := budget.ArenaReport{Name: name, Size: 1000, Used: 200, Peak: 300, Labels: usage,
			Scopes: usage, Fulls: 1,
			LastFull: name, PoolCap: 5,
			Sites: []stack.Site{{Label: name, Bytes: 100, Made: []string{name + " file", name}}}}
		slot, other := region, region
		region.Part, region.Kind = name, "region"
		slot.Name, slot.Part, slot.Kind, other.Name, other.Part, other.Kind = name+" 0", name+" ", "slot", name+" 1",
			name+" ", "slot"
		frame := region
		frame.Part, frame.Kind = "frame", "frame"
		r := budget.Report{Name: name, Arenas: []budget.ArenaReport{region, slot, other, frame},
			NotGranted: []string{name}, ErrorCount: 1, Errors: []string{name},
			Proxies: []arena.ProxyStats{{Name: name}}}
		page := live.New(nil, live.Options{Report: func() budget.Report {
			return r
		}, Links: []live.Link{{Name: name, Path: "/"}}})
		defer page.Close()
		root := parse(t, body(t, ask(page, "GET", "/")))
		return root.text + root.shape()
	}
	wanted := shown(harmless)
	assert.Equal(t, 51, strings.Count(wanted, harmless))
	for _, name := range []string{`"><script>`, `'onload='alert(1)`, "--><b>", "&lt;b&gt;&amp;&#39;",
		"{main}{name}{rows}", "`${alert(1)}`"} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, strings.ReplaceAll(wanted, harmless, name), shown(name))
		})
	}
}

// TestLinks: links lead to pages, never to scripts.
func TestLinks(t *testing.T) {
	for path, wanted := range map[string]string{
		"/room/0":                    "/room/0",
		"../debug/pprof/heap?gc=1&x": "../debug/pprof/heap?gc=1&x",
		"https://example.com/a":      "https://example.com/a",
		`/"><script>`:                "/%22%3E%3Cscript%3E",
		"/?a='\"":                    "/?a='\"",
		"javascript:alert(1)":        "#",
		"JavaScript:alert(1)":        "#",
		" javascript:alert(1)":       "#",
		"java\tscript:alert(1)":      "#",
		"data:text/html,<script>":    "#",
	} {
		page := live.New(nil, live.Options{Report: func() (r budget.Report) {
			return
		}, Links: []live.Link{{Name: "a", Path: path}}})
		defer page.Close()
		links := parse(t, body(t, ask(page, "GET", "/"))).all("nav")[0].all("a")
		assert.Equal(t, wanted, links[len(links)-1].attr["href"], path)
	}
}

// TestAnyReport: any report can be shown, also one from outside, or one too large to be shown
// whole.
func TestAnyReport(t *testing.T) {
	const most = ^uint64(0)
	many := budget.Report{Name: "many", ErrorCount: -1, Leaks: budget.Leaks{Scopes: -5}}
	for i := range 3000 {
		x := budget.ArenaReport{Name: fmt.Sprintf("level %d", i), Size: most, Used: most, Peak: 1, Fulls: i,
			PoolCap: most}
		for k := range 40 {
			x.Labels = append(x.Labels, scope.Usage{Name: strconv.Itoa(k), Bytes: most, Peak: most})
		}
		x.Scopes = x.Labels
		y := x
		y.Part, y.Kind = "scratch", "scratch"
		many.Arenas = append(many.Arenas, x, y)
	}
	for name, r := range map[string]budget.Report{
		"empty":  {},
		"many":   many,
		"zeroes": {Arenas: make([]budget.ArenaReport, 140)},
		"used":   {Arenas: []budget.ArenaReport{{Name: "level", Part: "level", Kind: "region", Used: most}}},
	} {
		t.Run(name, func(t *testing.T) {
			text := body(t, ask(still(t, r), "GET", "/"))
			parse(t, text)
			assert.Less(t, len(text), 300_000)
			assert.NotContains(t, text, "NaN")
			assert.Equal(t, http.StatusOK, ask(still(t, r), "GET", "/map.svg").StatusCode)
		})
	}
}

// TestTimeline: the files have the recorded data, and the page shows the picture.
func TestTimeline(t *testing.T) {
	p := newPond(t)
	page := p.page(t, live.Options{})
	d := p.timeline.Read()
	rows, err := csv.NewReader(strings.NewReader(body(t, ask(page, "GET", "/timeline.csv")))).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+int(d.Ticks))
	for k, line := range d.Arenas {
		assert.Equal(t, line.Name, rows[0][1+k])
		for i, most := range line.Most {
			assert.Equal(t, strconv.FormatUint(most, 10), rows[1+i][1+k])
		}
	}
	assert.Contains(t, rows[len(rows)-1][len(d.Arenas)+1], "level 2: load, full")

	var read timeline.Data
	require.NoError(t, json.Unmarshal([]byte(body(t, ask(page, "GET", "/timeline.json"))), &read))
	assert.Equal(t, d, read)

	picture := parse(t, body(t, ask(page, "GET", "/"))).by("time").all("img")
	require.Len(t, picture, 1)
	assert.Equal(t, "timeline.svg", picture[0].attr["src"])
	assert.Contains(t, body(t, ask(page, "GET", "/timeline.svg")), "level ×10")
}

// TestClosedBudget: the page works after the budget's Close.
func TestClosedBudget(t *testing.T) {
	p := newPond(t)
	page := p.page(t, live.Options{})
	_ = p.Close() // it reports the leak
	assert.Contains(t, body(t, ask(page, "GET", "/")), "6 slots")
	assert.Equal(t, http.StatusOK, ask(page, "GET", "/timeline.csv").StatusCode)
}

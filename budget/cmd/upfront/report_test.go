package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/view"
	"github.com/upfront-mem/upfront/budget/with/pprof"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

const recorded = "../../../tests/frogpond/testdata/recorded/"

// TestReportCommands compares plan, report and profile, their output and exit codes, with
// testdata/report.txt.
func TestReportCommands(t *testing.T) {
	dir := t.TempDir()
	var all strings.Builder
	for _, command := range []string{
		"plan check DATA/fine.json",
		"plan check DATA/fine.json DATA/faulty.json DATA/torn.json",
		"plan check DATA/fine.json DATA/faulty.json --json",
		"plan check DATA/fine.json DATA/none.json",
		"plan check DATA/none.json --json",
		"plan check DATA/fine.json DATA/main.json",
		"plan draw DATA/main.json",
		"plan draw DATA/fine.json",
		"plan draw DATA/fine.json --json",
		"plan draw DATA/fine.json -o DIR/plan.svg",
		"plan draw DATA/fine.json -o DIR/plan.svg --json",
		"plan draw DATA/fine.json -o - --json",
		"plan draw DATA/faulty.json -o DIR/none.svg",
		"plan draw DATA/fine.json -o DIR/none/plan.svg",
		"plan suggest DATA/main.json DATA/branch.json --headroom 10",
		"plan suggest DATA/main.json -o DIR/plan.json --json",
		"plan suggest DATA/live.json DATA/main.json -o DIR/plan.json",
		"plan suggest DATA/live.json",
		"plan check DIR/plan.json",
		"plan suggest DATA/main.json RECORDED/freedoom.json",
		"report draw DATA/branch.json -o DIR/report.svg",
		"report draw DATA/fine.json",
		"report draw DATA/torn.json",
		"report diff DATA/main.json DATA/main.json",
		"report diff DATA/main.json DATA/main.json --json",
		"report diff DATA/main.json DATA/branch.json",
		"report diff DATA/branch.json DATA/main.json --json",
		"report diff RECORDED/freedoom.json RECORDED/long.json",
		"report diff DATA/main.json DATA/none.json",
		"profile DATA/branch.json",
		"profile DATA/branch.json --top 3",
		"profile DATA/checked.json",
		"profile DATA/main.json --json",
		"profile DATA/branch.json -o DIR/game.pb.gz",
		"profile RECORDED/freedoom.json",
		"report draw 127.0.0.1:8035",
		"profile ftp://127.0.0.1/report.json",
	} {
		all.WriteString(shown(command, map[string]string{"DATA/": "testdata/", "RECORDED/": recorded, "DIR": dir}))
	}
	compare(t, "testdata/report.txt", all.String())
	for _, name := range []string{"plan.svg", "report.svg"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.HasPrefix(string(text), "<svg ") {
			t.Errorf("%s: %.20q, %v", name, text, err)
		}
	}
	file, err := os.Open(filepath.Join(dir, "game.pb.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if p, err := profile.Parse(file); err != nil || len(p.Sample) == 0 {
		t.Errorf("no profile: %v", err)
	}
}

// TestReportDraw checks that the text is that of package view.
func TestReportDraw(t *testing.T) {
	text, err := os.ReadFile("testdata/branch.json")
	if err != nil {
		t.Fatal(err)
	}
	var r budget.Report
	if err = json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	if err = view.ReportText(&want, r); err != nil {
		t.Fatal(err)
	}
	if code, out, said := runs("report", "draw", "testdata/branch.json"); code != codeFine || out != want.String() {
		t.Errorf("exit %d, %s%s", code, out, said)
	}
}

// TestOldReports checks that a report of the old format, with two lists of arenas, is read as one
// of today.
func TestOldReports(t *testing.T) {
	if now, before := reportIn(t, "testdata/main.json"), reportIn(t, "testdata/old.json"); !reflect.DeepEqual(now,
		before) {
		t.Errorf("%v\n%v", now.Arenas, before.Arenas)
	}
	for _, line := range []string{"report draw NAME", "report draw NAME -o -", "report diff NAME testdata/branch.json",
		"report diff testdata/branch.json NAME", "check NAME --against testdata/branch.json",
		"check testdata/branch.json --against NAME", "profile NAME", "plan suggest NAME", "plan check NAME"} {
		with := func(name string) string { return strings.ReplaceAll(line, "NAME", "testdata/"+name+".json") }
		code, out, said := runs(strings.Fields(with("main"))...)
		oldCode, oldOut, oldSaid := runs(strings.Fields(with("old"))...)
		mend := func(text string) string { return strings.ReplaceAll(text, "old.json", "main.json") }
		if code != oldCode || out != mend(oldOut) || said != mend(oldSaid) {
			t.Errorf("%s: exit %d, %s%s\n%s: exit %d, %s%s", with("main"), code, out, said, with("old"), oldCode,
				oldOut, oldSaid)
		}
	}
	for text, says := range map[string]string{
		`{"name": "x", "regions": [{"name": "", "used": 1}]}`:                "no report",
		`{"name": "x", "arenas": [{"name": "a", "used": 1}]}`:                "no report",
		`{"name": "x", "arenas": [], "beside": [{"name": 1}]}`:               ":1: beside.name: number is not a string",
		`{"name": "x", "arenas": [{"name": "a", "part": "a", "size": "x"}]}`: ":1: arenas.size: string is not a uint64",
	} {
		if _, err := parseReport("x", []byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestMostArenas checks the limit that a budget has.
func TestMostArenas(t *testing.T) {
	text := func(n int) []byte {
		one := `{"name": "a", "part": "a"}`
		return []byte(`{"name": "x", "arenas": [` + one + strings.Repeat(", "+one, n-1) + `]}`)
	}
	if _, err := parseReport("x", text(arenasMost)); err != nil {
		t.Error(err)
	}
	_, err := parseReport("x", text(arenasMost+1))
	if want := "x: no report: it has 65536 arenas, and a budget has at most 65535"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestJSON checks that with --json each command prints one object and nothing else.
func TestJSON(t *testing.T) {
	dir := t.TempDir()
	for _, line := range []string{
		"plan check testdata/fine.json", "plan check testdata/faulty.json", "plan draw testdata/fine.json",
		"plan suggest testdata/main.json", "plan draw testdata/faulty.json",
		"plan fleet ../../../tests/frogpond/serve.json", "plan fleet testdata/fine.json",
		"report draw testdata/main.json", "report draw testdata/main.json -o DIR/a.svg",
		"report diff testdata/main.json testdata/main.json", "report diff testdata/main.json testdata/branch.json",
		"check testdata/live.json --against testdata/main.json",
		"check testdata/branch.json testdata/main.json --against testdata/main.json", "profile testdata/main.json",
		"profile testdata/main.json -o DIR/a.pb.gz", "profile testdata/torn.json", "flow check GRAPHS/door.json",
		"flow draw GRAPHS/door.json", "flow export GRAPHS/door.json", "flow trace GRAPHS/door.json -e line.used -k 12",
		"flow trace GRAPHS/door.json -e line.used -k 13",
		"flow compile GRAPHS/door.json --host GRAPHS/host.json -o DIR/door.blob", "", "-h", "plan -h", "help report",
		"help nothing", "report diff -h", "completion bash", "plan check testdata/fine.json testdata/none.json"} {
		line = strings.NewReplacer("DIR", dir, "GRAPHS/", graphs).Replace(line)
		_, out, _ := runs(append(strings.Fields(line), "--json")...)
		d := json.NewDecoder(strings.NewReader(out))
		var object map[string]any
		if err := d.Decode(&object); err != nil {
			t.Errorf("%s: %v in %q", line, err, out)
		}
		if _, err := d.Token(); err != io.EOF {
			t.Errorf("%s: more than one object: %q", line, out)
		}
	}
}

// TestStandardOutput checks that -o - prints the bytes that -o writes to a file.
func TestStandardOutput(t *testing.T) {
	data, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for line, begins := range map[string]string{
		"plan draw DATA/fine.json": "<svg ", "report draw DATA/main.json": "<svg ", "plan suggest DATA/main.json": "{",
		"profile DATA/main.json":     "\x1f\x8b",
		"flow draw GRAPHS/door.json": "<svg ", "flow compile GRAPHS/door.json --host GRAPHS/host.json": "BLB1",
	} {
		here := strings.NewReplacer("DATA/", data+"/", "GRAPHS/", filepath.Join(data, "..", graphs)+"/").Replace(line)
		code, out, said := runs(append(strings.Fields(here), "-o", "-")...)
		if code != codeFine || !strings.HasPrefix(out, begins) {
			t.Errorf("%s: exit %d, %.20q, %s", line, code, out, said)
		}
		if code, _, said = runs(append(strings.Fields(here), "-o", "file")...); code != codeFine {
			t.Errorf("%s: exit %d, %s", line, code, said)
		}
		if file, err := os.ReadFile("file"); err != nil || string(file) != out {
			t.Errorf("%s: a file has %.20q, %v", line, file, err)
		}
	}
	if _, err := os.Stat("-"); err == nil {
		t.Error("there is a file of that name")
	}
}

// TestLong checks that commands cut long names and numbers.
func TestLong(t *testing.T) {
	name, number, dir := strings.Repeat("n", 100000), strings.Repeat("7", 100000), t.TempDir()
	for text, lines := range map[string][]string{
		`{"name": "x", "regions": [{"name": "a", "used": NUMBER}]}`: {
			"report draw FILE", "profile FILE"},
		`{"name": "x", "regions": [{"name": "a", "used": 0}], "plan": {"name": "NAME", "NAME": NUMBER}}`: {
			"report draw FILE", "plan suggest FILE"},
		`{"name": "x", "regions": [{"name": "a", "size": NUMBER, "note": NUMBER}]}`: {
			"plan check FILE", "plan draw FILE"},
		`{"name": "NAME", "size": 9, "regions": [{"name": "NAME", "size": 9, "used": 8, "labels": [{"name": "NAME", "bytes": 5, "peak": 7}],
			"scopes": [{"name": "NAME", "bytes": 5, "peak": 7}], "fulls": 1, "last_full": "NAME"}], "plan": {"name": "x", "regions": [
			{"name": "a", "size": 9}]}}`: {
			"profile FILE", "report draw FILE", "report diff FILE testdata/main.json", "check FILE --against FILE",
			"check FILE --against testdata/main.json", "plan suggest FILE", "plan suggest testdata/main.json FILE"},
		`{"name": "NAME", "size": 1, "regions": [{"name": "NAME", "size": 9, "used": 8}]}`: {"profile FILE"},
		`{"nodes": {"NAME": {"on": "NAME", "x": NUMBER}}}`: {
			"flow check FILE", "flow trace FILE -e x"},
	} {
		file := filepath.Join(dir, "file")
		if err := os.WriteFile(file, []byte(strings.NewReplacer("NAME", name, "NUMBER", number).Replace(text)),
			0o600); err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if _, out, said := runs(strings.Fields(strings.Replace(line, "FILE", file, 1))...); len(out)+
				len(said) > 20000 {
				t.Errorf("%s: %d bytes for %s", line, len(out)+len(said), text)
			}
		}
	}
}

// server answers as live pages do, and as other servers do.
func server(t *testing.T) string {
	t.Helper()
	report, err := os.ReadFile("testdata/main.json")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	answer := func(path, kind, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, body)
		})
	}
	answer("/page/{$}", "text/html; charset=utf-8", "<!doctype html>")
	answer("/page/report.json", "application/json", string(report))
	answer("/bare/{$}", "text/html", "<!doctype html>")
	answer("/bare/report.json", "text/html", "<!doctype html>")
	answer("/lost/{$}", "text/html", "<!doctype html>")
	answer("/text", "text/plain", "no report")
	answer("/plan", "application/json", `{"name": "x", "regions": [{"name": 7, "used": 0}]}`)
	answer("/strict", "application/json", `{"name": "x", "plan": {"sise": 7}}`)
	mux.Handle("/moved", http.RedirectHandler("/page/report.json", http.StatusFound))
	mux.Handle("/away", http.RedirectHandler("file:///etc/hostname", http.StatusFound))
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, budget.MiB)
		for range 65 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	step.Machine(t, step.Loopback())
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// TestURLs checks that a live page or its report is read as a file is, and that the error for
// another URL names it.
func TestURLs(t *testing.T) {
	url := server(t)
	_, want, _ := runs("profile", "testdata/main.json")
	for _, path := range []string{"/page/", "/page/report.json", "/moved", "/page/?a=b"} {
		if code, out, said := runs("profile", url+path); code != codeFine || out != want {
			t.Errorf("%s: exit %d, %s%s", path, code, out, said)
		}
	}
	if code, out, said := runs("report", "diff", url+"/page/", "testdata/main.json"); code != codeFine ||
		out != "equal\n" {
		t.Errorf("exit %d, %s%s", code, out, said)
	}
	for path, says := range map[string]string{
		"/none":    "404 Not Found",
		"/bare/":   "whose report.json is no report",
		"/lost/":   "/lost/report.json: 404 Not Found",
		"/text":    ":1: invalid character",
		"/plan":    ":1: regions.name: number is not a string",
		"/strict":  "plan: line 1: name:",
		"/away":    "unsupported protocol scheme",
		"/endless": "larger than 64MiB",
	} {
		code, out, said := runs("profile", url+path)
		if code != codeTrouble || out != "" || !strings.HasPrefix(said, url+path) || !strings.Contains(said, says) {
			t.Errorf("%s: exit %d, %q, %s", path, code, out, said)
		}
	}
	hidden := strings.Replace(url, "http://", "http://user:secret@", 1)
	if _, _, said := runs("profile", hidden+"/text"); strings.Contains(said, "secret") ||
		!strings.Contains(said, "/text") {
		t.Errorf("it tells the password, or not the URL: %s", said)
	}
	for _, nobody := range []string{"http://127.0.0.1:1/", "http://%zz", "://", "http://"} {
		if code, _, said := runs("profile", nobody); code != codeTrouble || said == "" {
			t.Errorf("%s: exit %d, %q", nobody, code, said)
		}
	}
}

// TestStalled checks the timeout with a server that never ends.
func TestStalled(t *testing.T) {
	step.Machine(t, step.Loopback())
	gone := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "{")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	defer s.Close()
	tool := newTool(io.Discard, io.Discard)
	tool.patience = 50 * time.Millisecond
	if _, err := tool.readReport(s.URL); err == nil || err.Error() != s.URL+": no answer within 50ms" {
		t.Errorf("it says %v", err)
	}
	<-gone
}

type deadlines struct {
	http.RoundTripper
	list []time.Time
}

func (d *deadlines) RoundTrip(r *http.Request) (*http.Response, error) {
	deadline, _ := r.Context().Deadline()
	d.list = append(d.list, deadline)
	return d.RoundTripper.RoundTrip(r)
}

// TestOneDeadline checks that a page and its report share one deadline.
func TestOneDeadline(t *testing.T) {
	usual := http.DefaultTransport
	defer func() { http.DefaultTransport = usual }()
	seen := &deadlines{RoundTripper: usual}
	http.DefaultTransport = seen
	if code, _, said := runs("profile", server(t)+"/page/"); code != codeFine {
		t.Errorf("exit %d, %s", code, said)
	}
	if len(seen.list) != 2 || seen.list[0].IsZero() || !seen.list[0].Equal(seen.list[1]) {
		t.Errorf("%v", seen.list)
	}
}

// FuzzReport checks that any report can be compared and printed: without a panic, and without bytes
// that steer a terminal.
func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"name": "x", "regions": [{"name": "a\u0000 1", "used": 18446744073709551615, "fulls": -1, "most_open": {"pools": -5},
		"labels": [{"name": "\u001b[31m", "peak": 18446744073709551615}]}, {"name": "a\u0000 2", "peak": 18446744073709551615}]}`))
	f.Add([]byte(`{"name": "x", "size": 18446744073709551615, "error_count": -9223372036854775808, "regions": [{"name": "a"},
		{"name": "a", "size": 18446744073709551615, "fulls": 9223372036854775807, "scopes": [{"name": "a", "peak": 1}, {"name": "a", "peak": 2}]},
		{"name": "a 1", "fulls": 9223372036854775807}, {"name": "a 2", "fulls": 9223372036854775807}]}`))
	f.Add([]byte(`{"name": "x", "arenas": [{"name": "a 0", "part": "a", "kind": "slot", "peak": 7}, {"name": "\u0000", "part": "frame", "kind": "\u001b"},
		{"name": "a", "part": "a", "index": -1, "size": 18446744073709551615, "scopes": [{"name": "a"}, {"name": "a 0", "peak": 1}]}]}`))
	other, err := newTool(io.Discard, io.Discard).readReport("testdata/main.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseReport("x", text)
		if err != nil {
			return
		}
		if d := differences(r, r); len(d) != 0 {
			t.Errorf("a report differs from itself: %v", d)
		}
		var out strings.Builder
		tool := newTool(&out, io.Discard)
		there, back := differences(r, other), differences(other, r)
		if len(there) != len(back) {
			t.Errorf("%d differences there, and %d back", len(there), len(back))
		}
		if err := tool.differ(&out, reportDiff{Differences: there}); err != nil {
			t.Error(err)
		}
		for i, against := range []budget.Report{r, other} {
			list := gate{share: 3 * onePercent}.growths(figuresOf(against), against, r)
			if i == 0 && slices.ContainsFunc(list, func(x growth) bool { return x.TooMuch }) {
				t.Errorf("it grew from itself: %v", list)
			}
			if err := tool.gated(&out, gateResult{Reports: []gateReport{{Figures: list}}}); err != nil {
				t.Error(err)
			}
			out.WriteString(otherRegions(figuresOf(against), figuresOf(r)))
		}
		if p, err := pprof.Profile(r); err == nil {
			if err := tool.eat(&out, eatersOf(r, p, 5)); err != nil {
				t.Error(err)
			}
		}
		if strings.ContainsAny(out.String(), "\x00\x1b") {
			t.Errorf("it disturbs a terminal: %q", out.String())
		}
	})
}

// TestDiffOfWhatIsCounted checks that objects and padding are compared only if both builds count
// them.
func TestDiffOfWhatIsCounted(t *testing.T) {
	level := budget.ArenaReport{Name: "level", Part: "level", Counted: true, Objects: 7, Padding: 5,
		Scopes: []scope.Usage{{Name: "level", Objects: 7}}}
	counted := budget.Report{Arenas: []budget.ArenaReport{level}}
	release := budget.Report{Arenas: []budget.ArenaReport{{Name: "level", Part: "level",
		Scopes: []scope.Usage{{Name: "level"}}}}}
	level.Objects, level.Padding, level.Scopes = 8, 6, []scope.Usage{{Name: "level", Objects: 8}}
	more := budget.Report{Arenas: []budget.ArenaReport{level}}
	if list := differences(counted, release); len(list) != 0 {
		t.Errorf("one of them doesn't count: %v", list)
	}
	if list := differences(counted, more); len(list) != 3 {
		t.Errorf("both count: %v", list)
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// The limits of a source: its size in bytes, and the time of a URL.
const (
	reportMax = 64 * budget.MiB
	patience  = 30 * time.Second
)

var errTooLarge = errors.New("larger than 64MiB, the most of a report")

func (t *tool) readReport(source string) (budget.Report, error) {
	data, err := t.read(source)
	if err != nil {
		return budget.Report{}, err
	}
	return parseReport(named(source), data)
}

// read returns the bytes of a report or a profile.
func (t *tool) read(source string) ([]byte, error) {
	t.progress.say("reading " + named(source))
	return t.readSource(source)
}

// named returns a source for messages: a URL without its password.
func named(source string) string {
	if !isURL(source) {
		return source
	}
	address, err := url.Parse(source)
	if err != nil {
		scheme, _, _ := strings.Cut(source, "://")
		return scheme + "://..."
	}
	return address.Redacted()
}

// hostAndPort matches a URL without its scheme: 127.0.0.1:8080/budget/.
var hostAndPort = regexp.MustCompile(`^[^/\\]*:\d+(/|$)`)

func isURL(source string) bool { return strings.Contains(source, "://") }

// readReports reads several reports; the error names every source that can't be read.
func (t *tool) readReports(sources []string) (reports []budget.Report, err error) {
	var errs []error
	for _, source := range sources {
		r, err := t.readReport(source)
		reports, errs = append(reports, r), append(errs, err)
	}
	return reports, errors.Join(errs...)
}

const arenasMost = 65535

func parseReport(source string, data []byte) (r budget.Report, err error) {
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return r, fmt.Errorf("%s: compressed, like a profile for go tool pprof; give a report, which is JSON", source)
	}
	if kindOf(data) == planKind {
		return r, fmt.Errorf("%s: this is a plan, not a report: plan draw shows it", source)
	}
	if kindOf(data) == timelineKind {
		return r, fmt.Errorf("%s: this is a timeline, not a report: check compares it with a plan", source)
	}
	if err = decode(source, data, &r); err == nil && len(r.Arenas) == 0 {
		r.Arenas, err = arenasBefore(source, data)
	}
	if err != nil {
		return r, err
	}
	nameless := func(a budget.ArenaReport) bool { return a.Part == "" }
	if r.Name == "" || !whole(r) || slices.ContainsFunc(r.Arenas, nameless) {
		return r, fmt.Errorf("%s: no report: give the JSON of a budget.Report, as frogpond -report writes", source)
	}
	if arenas := len(r.Arenas); arenas > arenasMost {
		return r, fmt.Errorf("%s: no report: it has %d arenas, and a budget has at most %d", source, arenas, arenasMost)
	}
	return r, nil
}

// whole reports whether the report has arenas, or a plan without any.
func whole(r budget.Report) bool {
	return len(r.Arenas) != 0 || r.Plan.Name != "" && len(r.Plan.Regions) == 0 &&
		r.Plan.Frame == (budget.FramePlan{}) && r.Plan.Scratch == (budget.ScratchPlan{})
}

func decode(source string, data []byte, to any) error {
	err := json.Unmarshal(data, to)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("%s:%d: %w", source, lineOf(data, syntax.Offset), err)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s:%d: %s: %s is not a %s", source, lineOf(data, wrong.Offset), wrong.Field,
			jsonfile.Echo(wrong.Value), wrong.Type)
	}
	if err != nil {
		return fmt.Errorf("%s: plan: %w", source, err)
	}
	return nil
}

// arenasBefore returns the arenas of a report in the old format: two lists, in which only an
// arena's name shows its part.
func arenasBefore(source string, data []byte) ([]budget.ArenaReport, error) {
	var file struct {
		Regions []budget.ArenaReport `json:"regions"`
		Beside  []budget.ArenaReport `json:"beside"` // frame and scratch
	}
	err := decode(source, data, &file)
	siblings := map[string]int{}
	list := slices.Concat(file.Regions, file.Beside)
	for i := range list {
		a, slot := &list[i], false
		a.Part, _, slot = strings.Cut(a.Name, " ")
		a.Index, siblings[a.Part] = siblings[a.Part], siblings[a.Part]+1
		switch {
		case i >= len(file.Regions):
			a.Kind = a.Part
		case slot:
			a.Kind = "slot"
		default:
			a.Kind = "region"
		}
	}
	return list, err
}

type kind int

const (
	otherKind kind = iota
	planKind
	reportKind
	timelineKind
)

// kindOf distinguishes reports, timelines and plans. A report has arenas, and so has a timeline,
// with steps. Without any arena a report has a plan, and a timeline its budget. An old report has
// regions, as a plan does, but with the member used. A plan without regions is otherKind if it has
// errors.
func kindOf(data []byte) kind {
	var file struct {
		Step    json.RawMessage   `json:"step"`
		Budget  json.RawMessage   `json:"budget"`
		Plan    json.RawMessage   `json:"plan"`
		Arenas  []json.RawMessage `json:"arenas"`
		Regions []struct {
			Used json.RawMessage `json:"used"`
		} `json:"regions"`
	}
	_ = json.Unmarshal(data, &file) // members of other types stay empty
	switch {
	case file.Step != nil && (len(file.Arenas) != 0 || file.Budget != nil):
		return timelineKind
	case len(file.Arenas) != 0 || file.Plan != nil:
		return reportKind
	case len(file.Regions) == 0:
		if _, err := budget.ParsePlan(data); err == nil {
			return planKind
		}
		return otherKind
	case file.Regions[0].Used == nil:
		return planKind
	}
	return reportKind
}

func lineOf(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(int(offset), len(data))], []byte("\n"))
}

func (t *tool) readSource(source string) ([]byte, error) {
	if !isURL(source) {
		data, err := jsonfile.ReadFile(source, reportMax, errTooLarge.Error())
		if err != nil && hostAndPort.MatchString(source) {
			err = fmt.Errorf("%w; a URL begins with http://", err)
		}
		return data, err
	}
	address, err := url.Parse(source)
	if err != nil {
		// url's own error has the password.
		return nil, fmt.Errorf("%s: no URL: the part before the host, or the path, is wrong", named(source))
	}
	ctx, cancel := context.WithTimeout(context.Background(), t.patience)
	defer cancel()
	data, err := readURL(ctx, address)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%s: no answer within %v", named(source), t.patience)
	}
	return data, err
}

func readURL(ctx context.Context, address *url.URL) ([]byte, error) {
	if address.Scheme != "http" && address.Scheme != "https" {
		return nil, fmt.Errorf("%s: only http and https are read", address.Redacted())
	}
	data, kind, err := get(ctx, address)
	if err == nil && kind == "text/html" {
		page := *address
		page.RawQuery = ""
		data, kind, err = get(ctx, page.JoinPath("report.json"))
	}
	if err == nil && kind == "text/html" {
		err = fmt.Errorf("%s: a page whose report.json is no report", address.Redacted())
	}
	return data, err
}

// get returns the body at an address, up to reportMax bytes, and its media type. The error names
// the address without its password.
func get(ctx context.Context, address *url.URL) (data []byte, kind string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", address.Redacted(), err)
		}
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // without its URL, which the deferred function adds
	}
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, "", errors.New(jsonfile.Echo(response.Status))
	}
	data, err = io.ReadAll(io.LimitReader(response.Body, reportMax+1))
	if err == nil && len(data) > reportMax {
		err = errTooLarge
	}
	kind, _, _ = mime.ParseMediaType(response.Header.Get("Content-Type"))
	return data, kind, err
}

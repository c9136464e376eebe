package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// What is read of a source at most, and how long a URL may take.
const (
	reportMax = 64 * budget.MiB
	patience  = 30 * time.Second
)

var errTooLarge = errors.New("larger than 64MiB, which no report is")

// readReport reads a report from a file or URL.
func (t *tool) readReport(source string) (budget.Report, error) {
	name := named(source)
	t.progress.say("reading " + name)
	data, err := t.readSource(source)
	if err != nil {
		return budget.Report{}, err
	}
	return parseReport(name, data)
}

// named is a source for messages: a URL without its password.
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

func isURL(source string) bool { return strings.Contains(source, "://") }

// readReports reads several; the error is of all that can't be read.
func (t *tool) readReports(sources []string) (reports []budget.Report, err error) {
	var errs []error
	for _, source := range sources {
		r, err := t.readReport(source)
		reports, errs = append(reports, r), append(errs, err)
	}
	return reports, errors.Join(errs...)
}

// arenasMost is how many arenas a budget has at most.
const arenasMost = 65535

func parseReport(source string, data []byte) (r budget.Report, err error) {
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return r, fmt.Errorf("%s: packed, as a profile is: that is for go tool pprof; a report is JSON", source)
	}
	err = json.Unmarshal(data, &r)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return r, fmt.Errorf("%s:%d: %w", source, lineOf(data, syntax.Offset), err)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return r, fmt.Errorf("%s:%d: %s: %s is no %s", source, lineOf(data, wrong.Offset), wrong.Field, wrong.Value, wrong.Type)
	}
	if err != nil {
		return r, fmt.Errorf("%s: plan: %w", source, err)
	}
	if r.Name == "" || len(r.Regions)+len(r.Beside) == 0 {
		return r, fmt.Errorf("%s: no report: give the JSON of a budget.Report, as frogpond -report writes", source)
	}
	if arenas := len(r.Regions) + len(r.Beside); arenas > arenasMost {
		return r, fmt.Errorf("%s: no report: it has %d arenas, and a budget has %d at most", source, arenas, arenasMost)
	}
	return r, nil
}

func lineOf(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(int(offset), len(data))], []byte("\n"))
}

func (t *tool) readSource(source string) ([]byte, error) {
	if !isURL(source) {
		return jsonfile.ReadFile(source, reportMax, errTooLarge.Error())
	}
	address, err := url.Parse(source)
	if err != nil {
		return nil, errors.New("no URL: what stands before the host or in the path is wrong") // url's own error has the password
	}
	data, err := t.readURL(address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", named(source), err)
	}
	return data, nil
}

// readURL reads a report, or that of a live page.
func (t *tool) readURL(address *url.URL) ([]byte, error) {
	if address.Scheme != "http" && address.Scheme != "https" {
		return nil, errors.New("only http and https are read")
	}
	data, kind, err := t.get(address)
	if err == nil && kind == "text/html" {
		page := *address
		page.RawQuery = ""
		data, kind, err = t.get(page.JoinPath("report.json"))
	}
	if err == nil && kind == "text/html" {
		err = errors.New("a page, and no report.json below it is a report")
	}
	return data, err
}

// get is a body and its media type. Whatever answers, it ends in time and has a bound.
func (t *tool) get(address *url.URL) (data []byte, kind string, err error) {
	client := http.Client{Timeout: t.patience}
	response, err := client.Get(address.String())
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // which names the URL, and so does who asked
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
	kind, _, _ = mime.ParseMediaType(response.Header.Get("Content-Type")) // none is no page
	return data, kind, err
}

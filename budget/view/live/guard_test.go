package live_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/budget/view/live"
)

var nothing = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })

// TestNames: a request must use a host name that no attacker can own.
func TestNames(t *testing.T) {
	guarded := live.Guard(nothing, "pond.example.com")
	for host, status := range map[string]int{
		"127.0.0.1":             http.StatusOK,
		"127.0.0.1:8080":        http.StatusOK,
		"[::1]:8080":            http.StatusOK,
		"[::1]":                 http.StatusOK,
		"192.168.0.7:80":        http.StatusOK,
		"localhost":             http.StatusOK,
		"LocalHost:8080":        http.StatusOK,
		"Pond.example.com:443":  http.StatusOK,
		"example.com":           http.StatusForbidden,
		"evil.example:8080":     http.StatusForbidden,
		"127.0.0.1.evil.net":    http.StatusForbidden,
		"localhost.evil.net":    http.StatusForbidden,
		"xpond.example.com":     http.StatusForbidden,
		"":                      http.StatusForbidden,
		"127.0.0.1@evil.net:80": http.StatusForbidden,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		guarded.ServeHTTP(w, r)
		assert.Equal(t, status, w.Code, host)
	}
}

// TestOtherSites: other sites may link here, and nothing else.
func TestOtherSites(t *testing.T) {
	guarded := live.Guard(nothing)
	status := func(site, mode string) int {
		return ask(guarded, "GET", "/", "Sec-Fetch-Site", site, "Sec-Fetch-Mode", mode).StatusCode
	}
	assert.Equal(t, http.StatusOK, status("cross-site", "navigate"))
	assert.Equal(t, http.StatusOK, status("same-origin", "cors"))
	assert.Equal(t, http.StatusForbidden, status("cross-site", "no-cors"))
	assert.Equal(t, http.StatusForbidden, status("cross-site", "cors"))
	assert.Equal(t, http.StatusForbidden, status("same-site", "cors"), "another port of this machine")
	assert.Equal(t, http.StatusForbidden, ask(guarded, "GET", "/", "Origin", "https://evil.example").StatusCode)
}

// TestPatience: a client that doesn't read an answer is cut off.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error)
		s := serve(t, live.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write(make([]byte, 1<<20))
			ended <- err
		})), live.ServerOptions{})
		begin := time.Now()
		s.dial(t, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		assert.ErrorIs(t, <-ended, os.ErrDeadlineExceeded)
		assert.Equal(t, 10*time.Second, time.Since(begin))
	})
}

// TestRefused: refusals have the same headers as answers.
func TestRefused(t *testing.T) {
	page := newPond(t).page(t, live.Options{})
	for path, status := range map[string]int{
		"/nothing":                       http.StatusNotFound,
		"/../page.go":                    http.StatusNotFound,
		"/page.html":                     http.StatusNotFound,
		"//":                             http.StatusNotFound,
		"/events/":                       http.StatusNotFound,
		"/?" + strings.Repeat("q", 2000): http.StatusRequestURITooLong,
		"/" + strings.Repeat("q", 2000):  http.StatusRequestURITooLong,
		"/report.json?a=b&&%00;=":        http.StatusOK,
	} {
		r := ask(page, "GET", path)
		assert.Equal(t, status, r.StatusCode, path)
		assert.Equal(t, policy, r.Header.Get("Content-Security-Policy"))
		assert.Equal(t, "nosniff", r.Header.Get("X-Content-Type-Options"))
	}
}

// FuzzRequest: any request gets one of a few answers, of limited length.
func FuzzRequest(f *testing.F) {
	p := newPond(f)
	page := p.page(f, live.Options{Links: []live.Link{{Name: "a", Path: "b"}}})
	f.Add("GET", "/", "", "localhost", "bytes=0-1")
	f.Add("HEAD", "/report.json", "a=b", "127.0.0.1", "bytes=9999999999999999999-,-1")
	f.Add("GET", "events", "%zz", "[::1", "")
	f.Add("HEAD", "/report.json", "", "localhost", "*")
	f.Add("POST", "\x00", "?", "x:y:z", "bytes=0-0,0-0,0-0")
	statuses := map[int]bool{200: true, 206: true, 304: true, 403: true, 404: true, 405: true, 414: true,
		416: true, 500: true}
	f.Fuzz(func(t *testing.T, method, path, query, host, span string) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		r := (&http.Request{Method: method, URL: &url.URL{Path: path, RawQuery: query}, Host: host,
			Header: http.Header{"Range": {span}, "If-None-Match": {span}}}).WithContext(ctx)
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		assert.True(t, statuses[w.Code], w.Code)
		assert.Less(t, w.Body.Len(), 1<<20)
		assert.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")
		if w.Code == http.StatusInternalServerError { // a recorder has no deadlines
			assert.Equal(t, "events", strings.TrimPrefix(path, "/"))
		}
	})
}

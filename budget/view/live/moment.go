package live

import (
	"bytes"
	"embed"
	"encoding/json"
	"io"
	"sync"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/budget/view"
)

//go:embed page.css page.js icon.svg
var files embed.FS

// moment is a report and its forms, each made at most once.
type moment struct {
	number  uint64
	picture func() ([]byte, error) // SVG
	main    func() (markup, error) // the part of the page that changes
	page    func() ([]byte, error)
	json    func() ([]byte, error)
}

func newMoment(number uint64, r budget.Report, links []Link, timed bool) *moment {
	m := &moment{number: number}
	m.picture = sync.OnceValues(func() ([]byte, error) { return drawn(view.Report, r) })
	m.main = sync.OnceValues(func() (markup, error) { return mainOf(r, number, timed) })
	m.page = sync.OnceValues(func() ([]byte, error) {
		main, err := m.main()
		return []byte(pageOf(r, main, links, timed)), err
	})
	m.json = sync.OnceValues(func() ([]byte, error) { return json.Marshal(r) })
	return m
}

// past is a timeline and its forms, each made at most once.
type past struct{ json, csv, picture func() ([]byte, error) }

func newPast(d timeline.Data) *past {
	return &past{
		json:    sync.OnceValues(func() ([]byte, error) { return json.Marshal(d) }),
		csv:     sync.OnceValues(func() ([]byte, error) { return csvOf(d) }),
		picture: sync.OnceValues(func() ([]byte, error) { return drawn(view.Timeline, d) }),
	}
}

func drawn[T any](draw func(io.Writer, T) error, of T) ([]byte, error) {
	var out bytes.Buffer
	err := draw(&out, of)
	return out.Bytes(), err
}

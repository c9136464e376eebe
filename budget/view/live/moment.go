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

// texts are answers by their path, each made at most once.
type texts map[string]func() ([]byte, error)

// moment is a report and its forms.
type moment struct {
	main  func() (markup, error) // the part of the page that changes
	texts texts
}

func newMoment(number uint64, r budget.Report, links []Link, timed bool) moment {
	main := sync.OnceValues(func() (markup, error) { return mainOf(r, number, timed) })
	return moment{main, texts{
		"": sync.OnceValues(func() ([]byte, error) {
			main, err := main()
			return []byte(pageOf(r, main, links, timed)), err
		}),
		"map.svg":     sync.OnceValues(func() ([]byte, error) { return drawn(view.Report, r) }),
		"report.json": sync.OnceValues(func() ([]byte, error) { return json.Marshal(r) }),
	}}
}

// pastOf returns the forms of a timeline.
func pastOf(d timeline.Data) texts {
	return texts{
		"timeline.json": sync.OnceValues(func() ([]byte, error) { return json.Marshal(d) }),
		"timeline.csv":  sync.OnceValues(func() ([]byte, error) { return csvOf(d) }),
		"timeline.svg":  sync.OnceValues(func() ([]byte, error) { return drawn(view.Timeline, d) }),
	}
}

func drawn[T any](draw func(io.Writer, T) error, of T) ([]byte, error) {
	var out bytes.Buffer
	err := draw(&out, of)
	return out.Bytes(), err
}

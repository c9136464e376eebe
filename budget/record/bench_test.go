package record_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
)

// counter counts written bytes.
type counter struct{ bytes int }

func (c *counter) Write(p []byte) (int, error) { c.bytes += len(p); return len(p), nil }

// pairs opens and closes scopes of a budget, recorded or not.
func pairs(b *testing.B, work func(g *budget.Budget)) {
	for _, isRecorded := range []bool{false, true} {
		name := "plain"
		if isRecorded {
			name = "recorded"
		}
		b.Run(name, func(b *testing.B) {
			g := open(b, game())
			var to counter
			if isRecorded {
				if _, err := record.Start(g, &to); err != nil {
					b.Fatal(err)
				}
			}
			work(g)
			before := to.bytes
			b.ResetTimer()
			for range b.N {
				work(g)
			}
			b.ReportMetric(float64(to.bytes-before)/float64(b.N), "bytes/op")
		})
	}
}

// BenchmarkPair opens and closes a scope on scratch.
func BenchmarkPair(b *testing.B) {
	pairs(b, func(g *budget.Budget) {
		s := g.Scratch(0, 0).Open("work")
		_ = s.Close()
	})
}

// BenchmarkPairWithBytes opens and closes a scope with an allocation.
func BenchmarkPairWithBytes(b *testing.B) {
	pairs(b, func(g *budget.Budget) {
		s := g.Scratch(0, 0).Open("work")
		frogs.New(s)
		_ = s.Close()
	})
}

// BenchmarkFrame allocates in a frame.
func BenchmarkFrame(b *testing.B) {
	pairs(b, func(g *budget.Budget) {
		frogs.New(g.Frame())
		_ = g.NextFrame()
	})
}

// BenchmarkReplay is per event.
func BenchmarkReplay(b *testing.B) {
	const events = 300_000
	var to bytes.Buffer
	g := open(b, game())
	r, err := record.Start(g, &to)
	if err != nil {
		b.Fatal(err)
	}
	for range events / 6 { // two pairs of Open, Grow, Close
		s := g.Scratch(0, 0).Open("work")
		frogs.New(s)
		inner := s.Open("inner")
		frogs.New(inner)
		_ = inner.Close()
		_ = s.Close()
	}
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
	var played record.Played
	var took time.Duration
	for b.Loop() {
		from := time.Now()
		if _, played, err = record.Replay(game(), bytes.NewReader(to.Bytes())); err != nil {
			b.Fatal(err)
		}
		took += time.Since(from)
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/float64(played.Events), "ns/event")
	b.ReportMetric(float64(to.Len())/float64(played.Events), "bytes/event")
}

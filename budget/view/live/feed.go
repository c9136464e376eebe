package live

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Feed sends the newest state of something to whoever looks, as server-sent events. Who is slow misses states and never
// delays others: nothing is queued. It has no goroutine of its own.
type Feed struct {
	latest  recent[event]
	viewers chan struct{} // who looks has a place in it
	end     context.Context
	cancel  context.CancelFunc
	once    sync.Once
}

// FeedOptions is how often a feed asks, and for how many.
type FeedOptions struct {
	Every   time.Duration // at least, between two states; 0: 250 ms
	Viewers int           // streams at once; 0: 32
}

const (
	streams  = 32
	feedPace = 250 * time.Millisecond
	comeBack = "5" // seconds
)

// What a stream waits for.
const (
	silence = 15 * time.Second // until a line without meaning finds out who is gone
	stall   = 5 * time.Second  // for who reads an event
)

// NewFeed makes a feed of what newest returns, text that is sent as the data of an event. Newest is called only while
// somebody looks, by one goroutine at a time, at most once in o.Every; all viewers share what it returns. What it
// returned last is not sent again.
func NewFeed(newest func() []byte, o FeedOptions) *Feed {
	if o.Viewers < 0 {
		panic("live: BUG: a feed for a negative number of viewers")
	}
	f := &Feed{viewers: make(chan struct{}, cmp.Or(o.Viewers, streams))}
	f.end, f.cancel = context.WithCancel(context.Background())
	f.latest = recent[event]{every: cmp.Or(o.Every, feedPace), make: func() event { return f.latest.value.next(newest()) }}
	return f
}

// event is a state as it is sent.
type event struct {
	number     uint64 // from 1
	data, sent []byte
}

// next is the event of new data; the same one when the data is the same. A line of data is a line of the event.
func (e event) next(data []byte) event {
	if e.number != 0 && bytes.Equal(e.data, data) {
		return e
	}
	sent := append([]byte("id: "), strconv.FormatUint(e.number+1, 10)...)
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		sent = append(append(sent, "\ndata: "...), bytes.ReplaceAll(line, []byte("\r"), nil)...)
	}
	return event{number: e.number + 1, data: data, sent: append(sent, "\n\n"...)}
}

// ServeHTTP sends events until the viewer is gone or the feed closed. Where all places are taken, or the feed is
// closed, the answer is status 503 with Retry-After. A viewer who reads nothing for 5 seconds is dropped.
func (f *Feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case f.viewers <- struct{}{}:
		defer func() { <-f.viewers }()
	default:
		w.Header().Set("Retry-After", comeBack)
		http.Error(w, "too many look: ask for the page instead, now and then", http.StatusServiceUnavailable)
		return
	}
	v := viewer{w, http.NewResponseController(w)}
	if err := v.wait(); err != nil {
		http.Error(w, "no stream without a deadline for who doesn't read: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodHead {
		f.stream(r.Context(), v)
	}
}

// stream gives the viewer each state that it has time for.
func (f *Feed) stream(gone context.Context, v viewer) {
	var seen uint64
	heard := time.Now()
	for f.end.Err() == nil {
		e, next := f.latest.get()
		var err error
		switch {
		case e.number != seen:
			err = v.send(e.sent)
			seen, heard = e.number, time.Now()
		case time.Since(heard) > silence:
			err = v.send([]byte(":\n\n"))
			heard = time.Now()
		}
		if err != nil {
			return
		}
		select {
		case <-time.After(max(time.Until(next), time.Millisecond)):
		case <-gone.Done():
			return
		case <-f.end.Done():
			return
		}
	}
}

// Close ends all streams, and waits for them: at most 5 seconds, where a viewer reads nothing.
func (f *Feed) Close() {
	f.once.Do(func() {
		f.cancel()
		for range cap(f.viewers) {
			f.viewers <- struct{}{}
		}
	})
}

// viewer is who reads a stream.
type viewer struct {
	w http.ResponseWriter
	c *http.ResponseController
}

// wait waits so long for a viewer that doesn't read.
func (v viewer) wait() error { return v.c.SetWriteDeadline(time.Now().Add(stall)) }

func (v viewer) send(text []byte) error {
	if err := v.wait(); err != nil {
		return err
	}
	if _, err := v.w.Write(text); err != nil {
		return err
	}
	return v.c.Flush()
}

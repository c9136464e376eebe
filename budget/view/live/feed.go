package live

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Feed sends the newest state of a value to viewers as server-sent events. No state is queued, so a
// slow viewer misses states and never delays other viewers. A feed has no goroutine of its own.
type Feed struct {
	latest  recent[event]
	viewers chan struct{} // one element for each viewer
	end     context.Context
	cancel  context.CancelFunc
	once    sync.Once
}

// FeedOptions are the bounds of a feed.
type FeedOptions struct {
	Every   time.Duration // least time between two states; 0 is 250 ms
	Viewers int           // most streams at once, up to 65536; 0 is 32
}

const (
	streams     = 32
	streamsMost = 1 << 16
	feedPace    = 250 * time.Millisecond
	comeBack    = "5" // seconds
)

// Time limits of a stream.
const (
	silence = 15 * time.Second // until an empty event shows whether the viewer is gone
	stall   = 5 * time.Second  // for a viewer to read an event
)

// NewFeed returns a feed of newest's results. Each result is sent as the data of an event. The feed
// calls newest only while there are viewers, in one goroutine at a time, and at most once in
// o.Every. All viewers share a result. A result equal to the last one isn't sent again. NewFeed
// panics if an option is out of range.
func NewFeed(newest func() []byte, o FeedOptions) *Feed {
	if o.Viewers < 0 || o.Viewers > streamsMost {
		panic(fmt.Sprintf("live: BUG: a feed for %d viewers: give 0 (the default, %d) to %d", o.Viewers, streams,
			streamsMost))
	}
	if o.Every < 0 {
		panic(fmt.Sprintf("live: BUG: a feed with a state each %v: give 0 (the default, %v) or more", o.Every,
			feedPace))
	}
	f := &Feed{viewers: make(chan struct{}, cmp.Or(o.Viewers, streams))}
	f.end, f.cancel = context.WithCancel(context.Background())
	f.latest = recent[event]{every: cmp.Or(o.Every, feedPace),
		make: func() event { return f.latest.value.next(newest()) }}
	return f
}

type event struct {
	number     uint64 // from 1
	data, sent []byte
}

// next returns the event of new data, or the same event for the same data. A line of data is a line
// of the event.
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

// ServeHTTP sends events until the viewer is gone or the feed closed. If FeedOptions.Viewers
// streams are open or the feed is closed, ServeHTTP answers with status 503 and Retry-After. A
// viewer is dropped if it delays a write by 5 seconds. If w doesn't support write deadlines, the
// status is 500.
func (f *Feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case f.viewers <- struct{}{}:
		defer func() { <-f.viewers }()
	default:
		w.Header().Set("Retry-After", comeBack)
		http.Error(w, "all streams are in use: load the page now and then instead", http.StatusServiceUnavailable)
		return
	}
	v := viewer{w, http.NewResponseController(w)}
	if err := v.wait(); err != nil {
		http.Error(w, "a stream needs write deadlines: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodHead {
		f.stream(r.Context(), v)
	}
}

// stream sends the viewer each state for which it has time.
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

// Close ends all streams and waits until they have ended. A viewer that doesn't read delays Close
// by at most 5 seconds.
func (f *Feed) Close() {
	f.once.Do(func() {
		f.cancel()
		for range cap(f.viewers) {
			f.viewers <- struct{}{}
		}
	})
}

type viewer struct {
	w http.ResponseWriter
	c *http.ResponseController
}

// wait sets the deadline for a viewer that doesn't read.
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

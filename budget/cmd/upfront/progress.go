package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress shows on a terminal that a command takes longer than a second, and clears that line at
// the end.
type progress struct {
	out   io.Writer
	mu    sync.Mutex
	doing string
	shown bool
	ended bool
	stop  chan struct{}
}

// newProgress returns a progress, which starts to show if out is a terminal.
func newProgress(out io.Writer, terminal bool) *progress {
	p := &progress{out: out, doing: "working", stop: make(chan struct{})}
	if terminal {
		go p.tell(time.Second)
	}
	return p
}

func (p *progress) tell(each time.Duration) {
	begin, ticker := time.Now(), time.NewTicker(each)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
			p.line(time.Since(begin))
		}
	}
}

const clearLine = "\r\x1b[K"

func (p *progress) line(since time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	fmt.Fprintf(p.out, "%supfront: %s, %.0f s", clearLine, p.doing, since.Seconds())
	p.shown = true
}

func (p *progress) say(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing = what
}

// end stops the progress. It may be called again.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	close(p.stop)
	if p.shown {
		fmt.Fprint(p.out, clearLine)
	}
}

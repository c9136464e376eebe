package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress says on a terminal what takes longer than a second, and takes it away at the end.
type progress struct {
	out   io.Writer
	mu    sync.Mutex
	doing string
	shown bool
	ended bool
	stop  chan struct{}
}

// newProgress begins to tell, if it is for a terminal.
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

// say says what is being done.
func (p *progress) say(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing = what
}

// end says nothing more. It may be called again.
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

package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
)

// progress is one line that is written again and again, if somebody watches.
type progress struct {
	out    io.Writer
	prefix string
	watch  bool
	buffer [128]byte // play must not allocate
}

func newProgress(stderr io.Writer, index, count int) *progress {
	p := &progress{out: stderr, prefix: fmt.Sprintf("\r\x1b[K%d/%d ", index+1, count)}
	if f, ok := stderr.(*os.File); ok {
		info, err := f.Stat()
		p.watch = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

func (p *progress) tick(name string, tick, ticks int) {
	if !p.watch {
		return
	}
	line := append(p.buffer[:0], p.prefix...)
	line = append(line, name...)
	line = append(line, " tick "...)
	line = strconv.AppendInt(line, int64(tick), 10)
	line = append(line, '/')
	p.out.Write(strconv.AppendInt(line, int64(ticks), 10))
}

// end wipes the line.
func (p *progress) end() {
	if p.watch {
		io.WriteString(p.out, "\r\x1b[K")
	}
}

// notRun says why a map is left out.
func (p *progress) notRun(name string, err error) {
	p.end()
	fmt.Fprintf(p.out, "frogpond: %s: not run: %v\n", name, err)
}

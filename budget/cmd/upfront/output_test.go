package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

// screen is a terminal that signals each write.
type screen struct {
	bytes.Buffer
	written chan struct{}
}

func (s *screen) Write(p []byte) (int, error) {
	n, err := s.Buffer.Write(p)
	select {
	case s.written <- struct{}{}:
	default:
	}
	return n, err
}

// TestProgress checks that a terminal shows long work and clears it, and that other outputs have no
// progress.
func TestProgress(t *testing.T) {
	s := &screen{written: make(chan struct{}, 1)}
	p := newProgress(s, false)
	p.say("reading x")
	go p.tell(time.Millisecond)
	<-s.written
	p.end()
	p.end()
	text := s.String()
	if !strings.Contains(text, "upfront: reading x, 0 s") && !strings.Contains(text, "upfront: working, 0 s") ||
		!strings.HasSuffix(text, clearLine) {
		t.Errorf("%q", text)
	}
	p.line(time.Second)
	if s.String() != text {
		t.Error("it goes on after its end")
	}
	s = &screen{written: make(chan struct{}, 1)}
	p = newProgress(s, false)
	if p.end(); s.Len() != 0 {
		t.Errorf("no terminal, and it says %q", s)
	}
}

// TestColours checks that only terminals get colours, and that colours don't move columns.
func TestColours(t *testing.T) {
	_, plain, _ := runs("report", "diff", "testdata/main.json", "testdata/branch.json")
	if strings.Contains(plain, "\x1b") {
		t.Errorf("no terminal, and it has colours: %q", plain)
	}
	var out bytes.Buffer
	tool := newTool(&out, nil)
	tool.colours = true
	c := newCommand(tool)
	c.SetArgs([]string{"report", "diff", "testdata/main.json", "testdata/branch.json"})
	if code := codeOf(c.Execute()); code != codeFound || !strings.Contains(out.String(), string(red)) ||
		!strings.Contains(out.String(), string(green)) {
		t.Errorf("exit %d, %q", code, out.String())
	}
	if bare := strings.NewReplacer(string(red), "", string(green), "", "\x1b[0m",
		"").Replace(out.String()); bare != plain {
		t.Errorf("other than without colours:\n%s", bare)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if isTerminal(null) {
		t.Error("a character device is no terminal yet")
	}
}

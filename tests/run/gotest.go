package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/upfront-mem/upfront/tests/step"
)

// event is a line of go test -json.
type event struct{ Action, Package, ImportPath, Test, Output string }

// results reads the events of go test -json. It shows the output of failed tests and packages, and
// passes on the messages of tests that lack a tool.
type results struct {
	show     func(format string, args ...any)
	done     func(line string)              // called with go test's line when a package ends
	unproven func(text string)              // called when a test lacks a tool
	said     map[[2]string]*strings.Builder // by package and test
}

// goTest runs go test -json. If loud, it prints go test's line for each package.
func (p *prover) goTest(dir string, env []string, loud bool, args ...string) error {
	c := goCommand(dir, append([]string{"test", "-json"}, args...)...).with(env...)
	read, write := io.Pipe()
	packages := 0
	r := results{
		show: p.say,
		done: func(line string) {
			packages++
			p.does("%d packages are done of %s", packages, c)
			if loud {
				p.say("%s", line)
			}
		},
		unproven: p.notProven,
		said:     map[[2]string]*strings.Builder{},
	}
	read1 := make(chan error)
	go func() {
		err := r.read(io.TeeReader(read, p.log))
		_, _ = io.Copy(io.Discard, read) // so that the command ends
		read1 <- err
	}()
	stderr := &strings.Builder{}
	err := p.start(c, write, io.MultiWriter(stderr, p.log))
	write.Close()
	if err != nil && stderr.Len() > 0 {
		p.say("%s", strings.TrimRight(stderr.String(), "\n"))
	}
	return errors.Join(err, <-read1)
}

func (r *results) read(from io.Reader) error {
	decoder := json.NewDecoder(from)
	for {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("go test -json: %w", err)
		}
		r.note(e)
	}
}

func (r *results) note(e event) {
	key := [2]string{e.Package + e.ImportPath, e.Test}
	switch e.Action {
	case "output", "build-output":
		if _, what, found := strings.Cut(e.Output, step.Unproven); found {
			r.unproven(e.Test + " of " + e.Package + ": " + strings.TrimSpace(what))
		}
		if r.said[key] == nil {
			r.said[key] = &strings.Builder{}
		}
		r.said[key].WriteString(e.Output)
	case "fail", "build-fail":
		if text := r.said[key]; text != nil {
			r.show("%s", strings.TrimRight(text.String(), "\n"))
		}
		delete(r.said, key)
	case "pass", "skip":
		if text := r.said[key]; text != nil && e.Test == "" {
			lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
			r.done(lines[len(lines)-1])
		}
		delete(r.said, key)
	}
}

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// helper is this program compiled another way: with each fast path through the bindings, or with the arena experiment. It does its rounds
// when it is asked to, and waits in between: so that it takes part as the others do.
type helper struct {
	command *exec.Cmd
	to      io.WriteCloser
	from    *bufio.Reader
}

// startHelpers starts those that were built beside this program.
func startHelpers() (list []*helper) {
	self, err := os.Executable()
	for _, name := range []string{"-cgo", "-arenas"} {
		if _, missing := os.Stat(self + name); err != nil || missing != nil {
			fmt.Fprintf(os.Stderr, "bench: %s%s isn't there; its rows will be missing\n", self, name)
			continue
		}
		x := &helper{command: exec.Command(self+name, "-serve")}
		x.command.Stderr = os.Stderr
		to, err1 := x.command.StdinPipe()
		from, err2 := x.command.StdoutPipe()
		if err1 != nil || err2 != nil || x.command.Start() != nil {
			fmt.Fprintf(os.Stderr, "bench: %s%s doesn't start\n", self, name)
			continue
		}
		x.to, x.from = to, bufio.NewReader(from)
		list = append(list, x)
	}
	return list
}

func (x *helper) stop() {
	x.to.Close()
	x.command.Wait()
}

// contestants is one or none: what the helper can do of the loop.
func (x *helper) contestants(l loop) []contestant {
	var who string
	x.ask("who|%s|0\n", l.name)
	if line, _ := x.from.ReadString('\n'); len(line) > 1 {
		who = line[:len(line)-1]
	}
	if who == "" {
		return nil
	}
	return []contestant{{who: who, helper: x, end: func() { x.ask("end|%s|0\n", l.name) }}}
}

func (x *helper) ask(format string, args ...any) { fmt.Fprintf(x.to, format, args...) }

func (x *helper) sample(name string, n int) (s sample) {
	x.ask("run|%s|%d\n", name, n)
	if _, err := fmt.Fscanln(x.from, &s.ns, &s.allocs, &s.sum); err != nil {
		panic("a helper ended: " + err.Error())
	}
	return s
}

// serve is the helper's side: lines of what, loop and number. It offers what the others don't have.
func serve(in io.Reader, out io.Writer) {
	entered := map[string]contestant{}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		line := strings.Split(lines.Text(), "|")
		name := line[1]
		n, _ := strconv.Atoi(line[2])
		l, _ := findLoop(name)
		switch line[0] {
		case "who":
			who := ""
			for _, c := range l.enter() {
				if c.who == offered {
					entered[name], who = c, shownAs
				} else if c.end != nil {
					c.end()
				}
			}
			fmt.Fprintln(out, who)
		case "run":
			s := entered[name].sample(l, n)
			fmt.Fprintln(out, s.ns, s.allocs, s.sum)
		case "end":
			if c := entered[name]; c.end != nil {
				c.end()
			}
			delete(entered, name)
		}
	}
}

func findLoop(name string) (loop, bool) {
	for _, w := range works {
		for _, l := range w.loops {
			if l.name == name {
				return l, true
			}
		}
	}
	return loop{}, false
}

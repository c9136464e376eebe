package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/upfront-mem/upfront/tests/step"
)

// logs is the folder for the output of commands.
const logs = "build/run"

type part struct {
	name, what string
	run        func(p *prover) error
}

// narrow reports whether a part uses one processor most of the time. Narrow parts that follow each
// other run at once.
func (x part) narrow() bool {
	return slices.Contains([]string{"modules", "clients", "full", "counts", "arm64"}, x.name)
}

// prover runs parts, and prints their outcome. Each part has a prover of its own.
type prover struct {
	*console
	step       step.Step
	requireAll bool

	doing string    // the command that runs; guarded by mu
	log   io.Writer // of the part
	cpu   time.Duration
}

// console is common to the provers of all parts.
type console struct {
	mu       sync.Mutex // guards the rest: a line may be printed while commands run
	out      io.Writer
	lines    int // number printed
	unproven []string
}

func newProver(out io.Writer, s step.Step) *prover {
	return &prover{console: &console{out: out}, step: s, requireAll: os.Getenv("REQUIRE_ALL") != "",
		log: io.Discard}
}

func (p *prover) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines++
	fmt.Fprintf(p.out, format+"\n", args...)
}

// does notes the running command, which speak prints.
func (p *prover) does(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing = fmt.Sprintf(format, args...)
}

// interval is the longest silence of the prover.
const interval = 15 * time.Second

// speak prints the running command after each interval without a line, until stop is called.
func (p *prover) speak(name string) (stop func()) {
	ticker, done := time.NewTicker(interval), make(chan struct{})
	p.mu.Lock()
	from, seen := time.Now(), p.lines
	p.mu.Unlock()
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			p.mu.Lock()
			if p.lines == seen {
				fmt.Fprintf(p.out, "... %s, %.0f s: %s\n", name, time.Since(from).Seconds(), p.doing)
			}
			seen = p.lines
			p.mu.Unlock()
		}
	})
	return func() {
		ticker.Stop()
		close(done)
		all.Wait()
	}
}

// prove runs the parts, and prints a line for each part and the proofs that were left out. It ends
// at the first part that fails, or with the narrow parts that run at once with that part.
func (p *prover) prove(list []part) error {
	from := time.Now()
	for i := 0; i < len(list); {
		n := 1
		for list[i].narrow() && i+n < len(list) && list[i+n].narrow() {
			n++
		}
		if err := p.atOnce(list[i : i+n]); err != nil {
			return err
		}
		i += n
	}
	if len(list) > 1 {
		p.say("make %s passed in %.0f s", p.step, time.Since(from).Seconds())
	}
	return p.conclude()
}

// atOnce runs parts at once, as many as the machine has processors.
func (p *prover) atOnce(list []part) error {
	var all sync.WaitGroup
	errs, places := make([]error, len(list)), make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, part := range list {
		places <- struct{}{}
		all.Go(func() {
			own := &prover{console: p.console, step: p.step, requireAll: p.requireAll}
			errs[i] = own.alone(part.name, func() error { return part.run(own) })
			<-places
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (p *prover) alone(name string, run func() error) error {
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(logs, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	p.log, p.cpu = log, 0
	from, stop := time.Now(), p.speak(name)
	err = run()
	stop()
	end := "ok"
	if err != nil {
		end = "FAILED"
	}
	p.say("%-10s %-6s %5.0f s, %5.0f s of CPU", name, end, time.Since(from).Seconds(), p.cpu.Seconds())
	if err != nil {
		return fmt.Errorf("%s: %w; all output is in %s", name, err, log.Name())
	}
	return nil
}

// conclude prints the proofs that were left out. If REQUIRE_ALL is set, it returns an error for
// them.
func (p *prover) conclude() error {
	for _, text := range p.unproven {
		p.say("%s%s", step.Unproven, text)
	}
	if p.requireAll && len(p.unproven) > 0 {
		return errors.New("REQUIRE_ALL is set, and proofs were left out")
	}
	return nil
}

// lacks notes a proof that was left out for lack of a tool, and the Debian package with the tool.
func (p *prover) lacks(what, tool, debian string) {
	p.notProven(fmt.Sprintf("%s: %s is missing; Debian's package %s brings it", what, tool, debian))
}

func (p *prover) notProven(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.unproven, text) {
		p.unproven = append(p.unproven, text)
	}
}

// command is a program to run, in a folder below the root, with variables added to the environment.
type command struct {
	dir  string
	env  []string
	args []string
}

func goCommand(dir string, args ...string) command {
	return command{dir: dir, args: append([]string{"go"}, args...)}
}

func (c command) with(env ...string) command {
	c.env = append(slices.Clone(c.env), env...)
	return c
}

func (c command) String() string {
	text := strings.Join(append(slices.Clone(c.env), c.args...), " ")
	if c.dir != "" {
		text = "cd " + c.dir + " && " + text
	}
	return text
}

// tail is the number of lines shown of a failed command.
const tail = 80

// do runs a command, and shows its output only if it fails.
func (p *prover) do(c command) error {
	_, err := p.output(c)
	return err
}

func (p *prover) output(c command) (string, error) {
	var stdout, both bytes.Buffer
	shared := &locked{to: io.MultiWriter(&both, p.log)}
	err := p.start(c, io.MultiWriter(&stdout, shared), shared)
	for line := range strings.Lines(both.String()) {
		if _, text, found := strings.Cut(line, step.Unproven); found {
			p.notProven(strings.TrimSpace(text))
		}
	}
	if err != nil {
		lines := strings.Split(strings.TrimRight(both.String(), "\n"), "\n")
		p.say("%s", strings.Join(lines[max(0, len(lines)-tail):], "\n"))
	}
	return stdout.String(), err
}

func (p *prover) start(c command, stdout, stderr io.Writer) error {
	p.does("%s", c)
	fmt.Fprintf(p.log, "$ %s\n", c)
	cmd := exec.Command(c.args[0], c.args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, append(os.Environ(), c.env...), stdout, stderr
	err := cmd.Run()
	if cmd.ProcessState != nil {
		p.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	return nil
}

// locked is a writer for stdout and stderr together.
type locked struct {
	mu sync.Mutex
	to io.Writer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(b)
}

func have(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

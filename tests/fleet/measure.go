package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/step"
)

type programs struct {
	upfront, pond, twin string
	plan, twinPlan      string // files
}

// buildPrograms builds all but the twin into a folder.
func buildPrograms(folder string) (p programs, err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return p, err
	}
	p.upfront, p.pond = filepath.Join(folder, "upfront"), filepath.Join(folder, "frogpond")
	p.plan = filepath.Join(root, "tests/frogpond/serve.json")
	for _, line := range [][]string{
		{"build", "-C", filepath.Join(root, "budget/cmd"), "-o", p.upfront, "./upfront"},
		{"build", "-C", root, "-o", p.pond, "./tests/frogpond"},
	} {
		if _, err := output(exec.Command("go", line...)); err != nil {
			return p, err
		}
	}
	return p, nil
}

// buildTwin builds the server of tests/bench's work P next to them: the same source, with its
// memory on the Go heap.
func (p *programs) buildTwin() error {
	folder := filepath.Dir(p.pond)
	out, err := output(exec.Command("go", "run", "-C", "../bench", ".", "-twin", folder))
	if err != nil {
		return err
	}
	p.twin, p.twinPlan = strings.TrimSuffix(string(out), "\n"), filepath.Join(folder, "twin.json")
	return p.writeTwinPlan()
}

// writeTwinPlan writes the plan of the twin, as tests/bench has it. Memory that the twin doesn't
// touch isn't resident.
func (p programs) writeTwinPlan() error {
	plan, err := budget.ReadPlan(p.plan)
	if err != nil {
		return err
	}
	plan.GoHeap, plan.Pages.Prefault = 0, budget.Off
	for i := range plan.Regions {
		plan.Regions[i].State = false
	}
	text, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	return os.WriteFile(p.twinPlan, text, 0o600)
}

func output(c *exec.Cmd) ([]byte, error) {
	out, err := c.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%s: %w: %s", strings.Join(c.Args, " "), err, failed.Stderr)
	}
	return out, err
}

// load is a server's work: the number of rooms, and their maps.
type load struct {
	rooms int
	maps  string
}

// usage is a server's resident memory, in bytes: the mean while all play, and the highest since its
// start.
type usage struct{ mean, peak uint64 }

const playersOfRoom = 16

type server struct {
	*exec.Cmd
	address string
	out     bytes.Buffer
}

var listens = regexp.MustCompile(` players on (\S+);`)

// start starts a server, and waits until it prints its address.
func start(program string, environment []string, flags ...string) (*server, error) {
	s := &server{Cmd: exec.Command(program,
		append([]string{"serve", "-json", "-addr", "127.0.0.1:0", "-drain", "0s", "-per-address", "0"}, flags...)...)}
	s.Env, s.Stdout = append(os.Environ(), environment...), &s.out
	pipe, err := s.StderrPipe()
	if err == nil {
		err = step.Start(s.Cmd)
	}
	if err != nil {
		return nil, err
	}
	lines := bufio.NewReader(pipe)
	for said := ""; ; {
		line, err := lines.ReadString('\n')
		said += line
		if m := listens.FindStringSubmatch(line); m != nil {
			s.address = m[1]
			go func() { _, _ = io.Copy(io.Discard, lines) }()
			return s, nil
		}
		if err != nil {
			return nil, fmt.Errorf("no server: %w: %s", errors.Join(err, s.Wait()), said)
		}
	}
}

// end ends the server with SIGTERM.
func (s *server) end() error {
	err := s.Process.Signal(syscall.SIGTERM)
	return errors.Join(err, s.Wait())
}

// measure has a server play with as many bots as fit its rooms, and reads its memory in the second
// half of the time.
func (p programs) measure(program string, environment []string, l load, play time.Duration, flags ...string) (u usage,
	err error) {
	s, err := start(program, environment, append(flags, "-rooms", fmt.Sprint(l.rooms), "-maps", l.maps)...)
	if err != nil {
		return u, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	n := l.rooms * playersOfRoom
	bots := exec.Command(p.pond, "bots", "-json", "-addr", s.address, "-n", fmt.Sprint(n), "-for", play.String(),
		"-loss", "2", "-jitter", "50ms")
	var out bytes.Buffer
	bots.Stdout = &out
	if err := step.Start(bots); err != nil {
		return u, err
	}
	u, err = look(s.Process.Pid, play)
	if err := errors.Join(err, bots.Wait()); err != nil {
		return u, err
	}
	var players struct{ Joined int }
	if err := json.Unmarshal(out.Bytes(), &players); err != nil {
		return u, err
	}
	if players.Joined < n {
		return u, fmt.Errorf("of %d bots %d joined", n, players.Joined)
	}
	return u, nil
}

// look reads a process' memory ten times in the second half of play.
func look(pid int, play time.Duration) (u usage, err error) {
	const times = 10
	time.Sleep(play / 2)
	for range times {
		now, peak, err := resident(pid)
		if err != nil {
			return u, err
		}
		u.mean += now / times
		u.peak = peak
		time.Sleep(play / 2 / (times + 2))
	}
	return u, nil
}

var residentLine = regexp.MustCompile(`(?m)^(VmRSS|VmHWM):\s+(\d+) kB$`)

// resident returns the resident memory of a process, now and at most.
func resident(pid int) (now, peak uint64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	lines := residentLine.FindAllStringSubmatch(string(text), -1)
	for _, line := range lines {
		size, err := budget.ParseSize(line[2] + "KiB")
		if err != nil {
			return 0, 0, err
		}
		if line[1] == "VmRSS" {
			now = size
		} else {
			peak = size
		}
	}
	if len(lines) != 2 {
		return 0, 0, fmt.Errorf("process %d: its status has no VmRSS and VmHWM", pid)
	}
	return now, peak, nil
}

// largestMap returns the map of the full server that takes the most of a slot.
func (p programs) largestMap(folder string) (name string, err error) {
	file := filepath.Join(folder, "report.json")
	s, err := start(p.pond, nil, "-rooms", fmt.Sprint(roomsMost), "-report", file)
	if err != nil {
		return "", err
	}
	if err := s.end(); err != nil {
		return "", err
	}
	var result struct{ Maps []string }
	var report budget.Report
	text, err := os.ReadFile(file)
	if err := errors.Join(err, json.Unmarshal(s.out.Bytes(), &result), json.Unmarshal(text, &report)); err != nil {
		return "", err
	}
	most := uint64(0)
	for _, a := range report.Arenas {
		if a.Part == "level" && a.Index < len(result.Maps) && a.Peak > most {
			most, name = a.Peak, result.Maps[a.Index]
		}
	}
	if name == "" {
		return "", errors.New("the server's report has no map")
	}
	return name, nil
}

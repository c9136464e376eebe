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
	"slices"
	"syscall"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/step"
)

var workP = work{
	letter: "P", title: "frogpond's server with 64 rooms of 16 players each, and 1,024 bots on the same machine " +
		"that lose 2 % of their packets and have the others come up to 50 ms late; medians of three turns",
	absent: "Hand-written Go is the server's own source on the Go heap, as work J's: GOGC is 100, GOMEMLIMIT the " +
		"sum of upfront's budget and its share of the Go heap. upfront replays the records of both, and ends in the " +
		"same states.",
	columns: []string{library, byHand},
	parts:   []part{{name: "P", measure: measureP}},
}

const (
	roomsP  = 64
	botsP   = 16 // of a room
	turnsP  = 3
	drainP  = 10 * time.Second
	startsP = time.Minute // the longest start of a server
)

// figuresP are figures of a server's result, by key, with the divisor for the unit.
var figuresP = []struct {
	name, unit, key string
	by              float64
}{
	{"rooms", "in all", "rooms", 1},
	{"played", "s in all", "seconds", 1},
	{"tick p50", "us a tick", "tick_p50_us", 1},
	{"tick p99", "us a tick", "tick_p99_us", 1},
	{"tick p99.9", "us a tick", "tick_p999_us", 1},
	{"tick max", "us a tick", "tick_max_us", 1},
	{"thread's CPU", "us a tick", "tick_cpu_mean_us", 1},
	{"late ticks", "in all", "late_ticks", 1},
	{"ticks played again", "in all", "resimulated_ticks", 1},
	{"Go allocations", "in all", "go_allocs", 1},
	{"collections", "in all", "collections", 1},
	{"pauses", "us in all", "pause_total_us", 1},
	{"resident peak", "MiB in all", "rss_peak", budget.MiB},
	{"sent to a player", "bytes a second", "bytes_out_per_player_s", 1},
}

func measureP(h *harness) (list []series, err error) {
	folder, err := os.MkdirTemp("", "frogpond")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	d := &duel{folder: folder, rooms: h.serveRooms, time: h.serveTime,
		network: []string{"-loss", "2", "-jitter", "50ms"}}
	if err := d.build(); err != nil {
		return nil, err
	}
	for _, f := range figuresP {
		list = append(list, newSeries("P "+f.name, f.unit, library), newSeries("P "+f.name, f.unit, byHand))
	}
	for turn := range turnsP {
		both, err := d.turn(turn%2 == 1)
		if err != nil {
			return nil, err
		}
		for i, f := range figuresP {
			for k, said := range both {
				list[2*i+k].values = append(list[2*i+k].values, said.figure(f.key)/f.by)
			}
		}
	}
	for i := range list {
		list[i].values = []float64{median(list[i].values)}
	}
	return list, nil
}

// duel is a server and its twin, which serve the same bots in turn.
type duel struct {
	folder     string
	ours, twin string // programs
	memory     string // of upfront's server, and the limit of the twin
	rooms      int
	time       time.Duration
	network    []string // flags of the bots, which are upfront's
}

func (d *duel) build() (err error) {
	if d.ours, err = buildPond(d.folder, library); err != nil {
		return err
	}
	d.twin, err = buildPond(d.folder, byHand)
	return err
}

// turn plays with both servers and returns both results. Upfront's server is last if last is true.
func (d *duel) turn(last bool) (both [2]served, err error) {
	if last {
		if both[1], err = d.playTwin(); err != nil {
			return both, fmt.Errorf("%s: %w", byHand, err)
		}
	}
	if both[0], err = d.play(d.ours); err != nil {
		return both, fmt.Errorf("%s: %w", library, err)
	}
	d.memory = fmt.Sprintf("%.0f", both[0].figure("budget_bytes")+both[0].figure("go_share_bytes"))
	if !last {
		if both[1], err = d.playTwin(); err != nil {
			return both, fmt.Errorf("%s: %w", byHand, err)
		}
	}
	return both, nil
}

type served map[string]any

func (s served) figure(key string) float64 {
	v, _ := s[key].(float64)
	return v
}

// playTwin plays with the twin, with as much memory as upfront's server had. The unused parts of
// the twin's budget aren't resident.
func (d *duel) playTwin() (served, error) {
	text, err := os.ReadFile(filepath.Join("..", "frogpond", "serve.json"))
	if err != nil {
		return nil, err
	}
	plan, err := budget.ParsePlan(text)
	if err != nil {
		return nil, err
	}
	plan.GoHeap, plan.Pages.Prefault = 0, budget.Off
	for i := range plan.Regions {
		plan.Regions[i].State = false // the region of a state is zeroed whole
	}
	name := filepath.Join(d.folder, "twin.json")
	if text, err = json.Marshal(plan); err != nil {
		return nil, err
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		return nil, err
	}
	return d.play(d.twin, "GOMEMLIMIT="+d.memory, "GOGC=100", name)
}

// play lets bots play on a server, and checks the results of both. The last of more is a plan file;
// the others are environment variables.
func (d *duel) play(program string, more ...string) (said served, err error) {
	records := filepath.Join(d.folder, "records")
	if err := errors.Join(os.RemoveAll(records), os.Mkdir(records, 0o700)); err != nil {
		return nil, err
	}
	line := []string{"serve", "-json", "-addr", "127.0.0.1:0", "-rooms", fmt.Sprint(d.rooms), "-drain", drainP.String(),
		"-per-address", "0", "-inputs", records}
	var env []string
	if n := len(more) - 1; n >= 0 {
		line, env = append(line, "-plan", more[n]), more[:n]
	}
	s, err := startServer(exec.Command(program, line...), env)
	if err != nil {
		return nil, err
	}
	defer s.end()
	if err := d.bots(s.address); err != nil {
		return nil, err
	}
	if said, err = s.stop(); err != nil {
		return nil, err
	}
	for _, f := range figuresP {
		if _, ok := said[f.key].(float64); !ok {
			return nil, fmt.Errorf("the server's result has no %s", f.key)
		}
	}
	return said, d.same(said, records)
}

// bots runs the bots, and checks that all play and see no wrong state.
func (d *duel) bots(address string) error {
	n := d.rooms * botsP
	line := []string{"bots", "-json", "-addr", address, "-n", fmt.Sprint(n), "-for", d.time.String()}
	out, err := output(exec.Command(d.ours, append(line, d.network...)...))
	if err != nil {
		return err
	}
	var said struct {
		Joined int
		Wrong  int `json:"wrong_states"`
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return err
	}
	if said.Wrong != 0 {
		return fmt.Errorf("the bots saw %d wrong states", said.Wrong)
	}
	if said.Joined < n {
		return fmt.Errorf("%w: of %d bots %d joined", errFew, n, said.Joined)
	}
	return nil
}

// errFew is the error of a slow machine, on which bots join too late.
var errFew = errors.New("not all play")

// same checks that upfront reaches the server's last states from the records.
func (d *duel) same(said served, records string) error {
	out, err := output(exec.Command(d.ours, "offline", "-json", records))
	if err != nil {
		return err
	}
	var offline struct{ Hash []any }
	if err := json.Unmarshal(out, &offline); err != nil {
		return err
	}
	if hashes, _ := said["hash"].([]any); len(hashes) != d.rooms || !slices.Equal(hashes, offline.Hash) {
		return fmt.Errorf("the rooms ended in %v, their records in %v", hashes, offline.Hash)
	}
	return nil
}

// output returns a program's output; its error has stderr.
func output(c *exec.Cmd) ([]byte, error) {
	out, err := c.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	return out, err
}

type server struct {
	command   *exec.Cmd
	address   string
	out, said bytes.Buffer
	drained   chan struct{} // closed after all output was read
}

var listens = regexp.MustCompile(` players on (\S+);`)

// startServer starts a server and waits for its address.
func startServer(c *exec.Cmd, env []string) (*server, error) {
	s := &server{command: c, drained: make(chan struct{})}
	c.Env, c.Stdout = append(os.Environ(), env...), &s.out
	pipe, err := c.StderrPipe()
	if err == nil {
		err = step.Start(c)
	}
	if err != nil {
		return nil, err
	}
	late := time.AfterFunc(startsP, func() { _ = c.Process.Kill() })
	defer late.Stop()
	lines := bufio.NewReader(pipe)
	for s.address == "" && err == nil {
		var line string
		line, err = lines.ReadString('\n')
		s.said.WriteString(line)
		if m := listens.FindStringSubmatch(line); m != nil {
			s.address = m[1]
		}
	}
	go func() {
		_, _ = io.Copy(&s.said, lines)
		close(s.drained)
	}()
	if s.address == "" {
		s.end()
		return nil, fmt.Errorf("no server: %w: %s", err, s.said.String())
	}
	return s, nil
}

func (s *server) stop() (said served, err error) {
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		return nil, err
	}
	<-s.drained
	if err := s.command.Wait(); err != nil {
		return nil, fmt.Errorf("the server: %w: %s", err, s.said.String())
	}
	return said, json.Unmarshal(s.out.Bytes(), &said)
}

func (s *server) end() {
	if s.command.ProcessState == nil {
		_ = s.command.Process.Kill()
		<-s.drained
		_ = s.command.Wait()
	}
}

//go:build linux && !race && !asan && !checked && !upfront_cgo

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/bots"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/serve"
	"github.com/upfront-mem/upfront/tests/step"
)

// process is this program in a process of its own. Tests with processes run only in the release
// build, since its memory and allocations are a real server's.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr said
	ended  chan struct{}
}

// said collects the output of a process.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// asProgram is the environment variable that makes the test binary run as the program.
const asProgram = "FROGPOND_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main() // main exits
	}
	if err := flag.Set("test.parallel", "4"); err != nil { // the tests wait more than they work
		panic(err)
	}
	os.Exit(m.Run())
}

// start starts the program, and kills it at the end of the test if it still runs. On Linux it ends
// with a killed test as well. Arguments such as NAME=value are variables of its environment.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startInto(t, nil, nil, args...)
}

// variable matches an argument of start that is a variable of the environment.
var variable = regexp.MustCompile(`^[A-Z_]+=`)

// startInto is start with other files for stdout and stderr, where they aren't nil.
func startInto(t *testing.T, stdout, stderr *os.File, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), asProgram+"=1")
	for _, arg := range args {
		if variable.MatchString(arg) {
			p.cmd.Env = append(p.cmd.Env, arg)
		} else {
			p.cmd.Args = append(p.cmd.Args, arg)
		}
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if stdout != nil {
		p.cmd.Stdout = stdout
	}
	if stderr != nil {
		p.cmd.Stderr = stderr
	}
	err := step.Start(p.cmd)
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skip("the emulator starts no programs: on a machine of this target, go test ./tests/frogpond runs it")
	}
	require.NoError(t, err)
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error if it has ended
	<-p.ended
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// patience is far longer than anything takes. silence is how long a busy machine may keep a player
// from sending.
const (
	patience = 5 * time.Minute
	silence  = "1m"
)

// until waits until happened returns true, or fails the test after patience.
func (p *process) until(what string, happened func() bool) {
	p.t.Helper()
	for end := time.Now().Add(patience); !happened(); time.Sleep(5 * time.Millisecond) {
		require.True(p.t, time.Now().Before(end), "%s: not within %v; it said: %s", what, patience,
			&p.stderr)
	}
}

// says waits until stderr has a text at least the given number of times.
func (p *process) says(what string, times int) {
	p.t.Helper()
	p.until(what, func() bool { return strings.Count(p.stderr.String(), what) >= times })
}

// result waits for an end with exit code 0, and decodes the output.
func (p *process) result(to any) {
	p.t.Helper()
	<-p.ended
	require.Zero(p.t, p.cmd.ProcessState.ExitCode(), "%s: %s\n%s", p.cmd.ProcessState, &p.stderr,
		&p.stdout)
	require.NoError(p.t, json.Unmarshal(p.stdout.Bytes(), to))
}

// serving is a server in a process of its own.
type serving struct {
	*process
	address string
}

var listensOn = regexp.MustCompile(`players on ([^;]+);`)

func startServer(t *testing.T, args ...string) *serving {
	t.Helper()
	step.Machine(t, step.Loopback())
	args = append([]string{"serve", "-json", "-addr", "127.0.0.1:0", "-timeout", silence, "-per-address", "0"}, args...)
	s := &serving{process: start(t, args...)}
	s.says("players on", 1)
	s.address = listensOn.FindStringSubmatch(s.stderr.String())[1]
	return s
}

func (s *serving) end() (r serve.Result) {
	s.t.Helper()
	s.signal(syscall.SIGTERM)
	s.result(&r)
	return r
}

// bots starts n bots, which play until each has seen so many states. The server sends a state each
// second tick, so counts don't depend on the machine's speed.
func (s *serving) bots(n, states int, args ...string) *process {
	s.t.Helper()
	return s.botsFor(n, patience, append(args, "-states", strconv.Itoa(states))...)
}

// minute is the number of states that a bot sees in a minute of play.
const minute = 60 * 35 / 2

func (s *serving) botsFor(n int, d time.Duration, args ...string) *process {
	s.t.Helper()
	step.Machine(s.t, step.Files(uint64(n)+32)) // a socket for each
	return start(s.t, append([]string{"bots", "-json", "-addr", s.address, "-n", strconv.Itoa(n),
		"-for", d.String(), "-timeout", silence}, args...)...)
}

// saw waits for the bots to end, and returns their result.
func (p *process) saw() (r bots.Result) {
	p.t.Helper()
	p.result(&r)
	return r
}

// inside waits until the server, started with -health, has n players.
func (s *serving) inside(n int) {
	s.t.Helper()
	url := regexp.MustCompile(`http://[^/]+`).FindString(s.stderr.String())
	s.until(strconv.Itoa(n)+" players", func() bool {
		answer, err := http.Get(url + "/readyz")
		if err != nil {
			return false // a busy machine may be too slow for the server's timeout
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return err == nil && strings.HasPrefix(string(text), "ok: "+strconv.Itoa(n)+" of ")
	})
}

func offline(t *testing.T, args ...string) (r Offline) {
	t.Helper()
	start(t, append([]string{"offline", "-json"}, args...)...).result(&r)
	return r
}

// Called by a test that starts programs: such tests run in parallel, because they wait more than
// they work. In soak each has the machine to itself, for its figures.
func beside(t *testing.T) {
	t.Helper()
	if step.Now() < step.Soak {
		t.Parallel()
	}
}

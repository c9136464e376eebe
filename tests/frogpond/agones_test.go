//go:build linux && !race && !asan && !checked && !upfront_cgo

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/with/agones"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/serve"
	"github.com/upfront-mem/upfront/tests/sidecar"
	"github.com/upfront-mem/upfront/tests/step"
)

// pod is a fake sidecar with a port, which stays the same when it dies and starts again.
type pod struct {
	*sidecar.Sidecar
	t      *testing.T
	port   string
	server *http.Server
}

func startPod(t *testing.T) *pod {
	t.Helper()
	step.Machine(t, step.Loopback())
	p := &pod{Sidecar: sidecar.New(), t: t, port: "0"}
	p.starts()
	t.Cleanup(p.dies)
	return p
}

func (p *pod) starts() {
	p.t.Helper()
	listener, err := net.Listen("tcp", "localhost:"+p.port)
	require.NoError(p.t, err)
	p.port = strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	p.server = &http.Server{Handler: p.Sidecar}
	go func(s *http.Server) { _ = s.Serve(listener) }(p.server)
}

func (p *pod) dies() { _ = p.server.Close() }

func (p *pod) variable() string { return agones.PortVariable + "=" + p.port }

// count returns the number of calls so far that begin with a text.
func (p *pod) count(text string) (n int) {
	for _, call := range p.Calls() {
		if strings.HasPrefix(call, text) {
			n++
		}
	}
	return n
}

// exits waits for the end of a program, and returns its exit code and its output.
func (p *process) exits() (code int, says string) {
	p.t.Helper()
	<-p.ended
	return p.cmd.ProcessState.ExitCode(), p.stdout.String() + p.stderr.String()
}

// The self test makes these calls, in this order.
func TestSelfTest(t *testing.T) {
	beside(t)
	for rooms, args := range map[string][]string{"8": {}, "3": {"-agones", "-rooms", "3"}} {
		pod := startPod(t)
		code, says := start(t, append([]string{pod.variable(), "serve", "-selftest"}, args...)...).exits()
		assert.Zero(t, code)
		assert.Empty(t, says)
		assert.Equal(t, []string{
			"GET /gameserver",
			"GET /watch/gameserver",
			"POST /ready {}",
			"POST /health {}",
			`POST /reserve {"seconds":"5"}`,
			"POST /allocate {}",
			`PUT /metadata/label {"key":"timestamp","value":"` + sidecar.Created + `"}`,
			`PUT /metadata/annotation {"key":"UID","value":"` + sidecar.UID + `"}`,
			"GET /v1beta1/counters/rooms",
			`PATCH /v1beta1/counters/rooms {"capacity":"` + rooms + `"}`,
			`PATCH /v1beta1/counters/rooms {"count":"0"}`,
			`PATCH /v1beta1/counters/rooms {"countDiff":"1"}`,
			"POST /shutdown {}",
		}, pod.Calls())
		assert.Empty(t, pod.Wrong())
	}
}

// The self test ends with 1 at the first call that fails, and with the call's name. It waits for a
// sidecar that starts later.
func TestSelfTestFails(t *testing.T) {
	beside(t)
	pod := startPod(t)
	pod.Change(func(g *sidecar.Server) { g.Counters = false })
	code, says := start(t, pod.variable(), "serve", "-selftest").exits()
	assert.Equal(t, 1, code)
	assert.Equal(t, "frogpond: -selftest: agones: GET /v1beta1/counters/rooms: status 500: \"CountsAndLists not "+
		"enabled\"\n", says)

	pod.dies()
	late := start(t, pod.variable(), "serve", "-selftest")
	pod.Sidecar = sidecar.New()
	var one sync.Once
	// The first answer is of another server.
	pod.Instead(func(w http.ResponseWriter, _ *http.Request) {
		one.Do(func() { pod.Instead(nil) })
		_, _ = io.WriteString(w, `{"object_meta":{"uid":"another"},"status":{}}`)
	})
	pod.starts()
	code, says = late.exits()
	assert.Equal(t, 1, code)
	assert.Equal(t, "frogpond: -selftest: the watch is of the game server with the uid \""+sidecar.UID+
		"\"; the uid is \"another\"\n", says)
}

// Wrong flags and variables are named.
func TestAgonesFlags(t *testing.T) {
	beside(t)
	for want, args := range map[string][]string{
		"frogpond serve: -selftest tests the calls of -agones, which is off\n": {agones.PortVariable + "=",
			"serve", "-selftest"},
		"frogpond serve: agones: AGONES_SDK_HTTP_PORT=http: want a port, 1 to 65535\n": {agones.PortVariable + "=http",
			"serve"},
		"frogpond serve: agones: AGONES_SDK_HTTP_PORT=0: want a port, 1 to 65535\n": {agones.PortVariable + "=0",
			"serve", "-agones"},
		"frogpond serve: -selftest tests the calls of -agones, which is off\n\x00": {agones.PortVariable + "=9358",
			"serve", "-agones=false", "-selftest"},
		"frogpond serve: -rooms 0: 1 to 64\n": {agones.PortVariable + "=9358", "serve", "-selftest", "-rooms", "0"},
	} {
		code, says := start(t, args...).exits()
		assert.Equal(t, 2, code)
		assert.Equal(t, strings.TrimSuffix(want, "\x00"), says)
	}
}

// A server of 64 rooms plays on while its sidecar is dead, and while it answers wrongly. Once it is
// well, its counter follows the rooms. The rooms' records have each tick, and replay to the last
// states.
func TestServeAgones(t *testing.T) {
	beside(t)
	const rooms = 64
	players := step.Pick(1, 4, 16)
	step.Machine(t, step.Files(uint64(rooms*players)+4*rooms))
	pod := startPod(t)
	pod.Change(func(g *sidecar.Server) { g.Period = 1 })
	inputs := t.TempDir()
	s := startServer(t, pod.variable(), "-wad", doom.Builtin, "-rooms", strconv.Itoa(rooms), "-players",
		strconv.Itoa(players), "-inputs", inputs)
	shows := func(state, label string, count int) {
		t.Helper()
		s.until(fmt.Sprint(state, " ", label, " ", count), func() bool {
			g := pod.Server()
			return g.State == state && g.Labels["agones.dev/sdk-rooms"] == label && g.Count == int64(count) &&
				g.Capacity == rooms
		})
	}
	shows("Ready", "free", 0)

	pod.dies()
	s.says("connection refused", 1)
	states := step.Pick(5, 70, minute)
	checkPlayed(t, s.bots(rooms*players, states).saw(), rooms*players, states)

	lies, hang := atomic.Int32{}, make(chan struct{})
	pod.Instead(func(w http.ResponseWriter, r *http.Request) {
		switch n := lies.Add(1); n % 5 {
		case 0:
			w.WriteHeader(http.StatusInternalServerError)
		case 1:
			http.Redirect(w, r, "http://"+s.address, http.StatusFound)
		case 2:
			_, _ = io.WriteString(w,
				`{"name":"rooms","count":"99","capacity":"-1","object_meta":{},"status":{"state":"Allocated"}}`)
		case 3:
			_, _ = io.WriteString(w, `{"object_`)
			panic(http.ErrAbortHandler)
		default:
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}
	})
	pod.starts()
	in := s.botsFor(rooms*players, patience)
	in.says("bots play", 1)
	s.until("lies of each kind", func() bool { return lies.Load() >= int32(step.Pick(4, 20, 500)) })
	pod.Instead(nil)
	close(hang)
	shows("Allocated", "full", rooms)
	in.signal(syscall.SIGTERM)
	checkPlayed(t, in.saw(), rooms*players, 1)
	shows("Ready", "free", 0)

	if step.Now() >= step.Check {
		few := s.botsFor(3*players, patience)
		few.says("bots play", 1)
		shows("Allocated", "free", 3)
		few.signal(syscall.SIGTERM)
		checkPlayed(t, few.saw(), 3*players, 1)
		shows("Ready", "free", 0)
	}

	r := s.end()
	assert.Zero(t, r.GoAllocs, strings.Join(r.AllocatedBy, "\n"))
	assert.NotZero(t, r.GoAllocsPage)
	assert.Zero(t, r.Collections)
	assert.Zero(t, *r.BudgetFaults)
	assert.LessOrEqual(t, *r.ResidentPeak, r.BudgetBytes+r.GoShare+besideBudget)
	assert.Zero(t, r.Faults+r.Unloaded+r.Lost+r.Unrecorded)
	assert.Equal(t, "Shutdown", pod.Server().State)
	assert.Equal(t, "POST /shutdown {}", pod.Calls()[len(pod.Calls())-1])
	assert.Empty(t, pod.Wrong())
	again := offline(t, "-wad", doom.Builtin, inputs)
	assert.Equal(t, r.Hash, again.Hash)
	played := make([]uint32, rooms)
	for _, record := range again.Records {
		played[record.Room] = record.First + uint32(record.Ticks)
	}
	assert.Equal(t, r.TickCount, played)
	assert.NotContains(t, played, uint32(0))
}

// SIGTERM while a call to allocate hangs: the server drains, and asks Agones to remove it.
func TestTermWhileAllocating(t *testing.T) {
	beside(t)
	pod := startPod(t)
	s := startServer(t, pod.variable(), "-wad", doom.Builtin, "-rooms", "1")
	s.until("ready", func() bool { return pod.Server().State == "Ready" })
	pod.Instead(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/allocate" {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, "{}")
	})
	in := s.botsFor(1, patience)
	in.says("bots play", 1)
	s.until("it allocates", func() bool { return pod.count("POST /allocate") > 0 })
	ready := pod.count("POST /ready")
	s.signal(syscall.SIGTERM)
	in.saw()
	var r serve.Result
	s.result(&r)
	assert.Zero(t, r.Lost+r.Faults)
	calls := pod.Calls()
	assert.Equal(t, "POST /shutdown {}", calls[len(calls)-1])
	assert.Equal(t, ready, pod.count("POST /ready"))
}

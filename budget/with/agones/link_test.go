package agones

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/sidecar"
	"github.com/upfront-mem/upfront/tests/step"
)

func openRooms(t testing.TB, slots int) *budget.Budget {
	b, err := budget.Open(budget.Plan{Name: "pond",
		Regions: []budget.RegionPlan{{Name: "room", Size: 64 * budget.KiB, Slots: slots}},
		Pages:   budget.Pages{Prefault: budget.Off}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.Close()) })
	return b
}

// program is a program with rooms, a link and a fake sidecar, in the time of synctest.
type program struct {
	t     *testing.T
	fake  *sidecar.Sidecar
	link  *Link
	slots *budget.Slots
	rooms []budget.Region
	stuck atomic.Bool // the heartbeat stands still

	mu   sync.Mutex
	logs []string
}

// inProgram runs a test with a program of three rooms.
func inProgram(t *testing.T, test func(t *testing.T, p *program)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := openRooms(t, 3)
		p := &program{t: t, fake: sidecar.New(), slots: b.Slots("room")}
		c, _ := dial(t, p.fake)
		began := time.Now()
		ticks := func() uint64 {
			if p.stuck.Load() {
				return 0
			}
			return uint64(time.Since(began) / (time.Second / 35))
		}
		var err error
		p.link, err = c.Link(b, "room", Options{Ticks: ticks, Log: func(err error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.logs = append(p.logs, err.Error())
		}})
		require.NoError(t, err)
		t.Cleanup(func() {
			p.link.Close()
			p.use(0)
			assert.Empty(t, p.fake.Wrong())
		})
		test(t, p)
	})
}

// use makes n rooms be in use.
func (p *program) use(n int) {
	for len(p.rooms) < n {
		r, err := p.slots.Acquire()
		require.NoError(p.t, err)
		p.rooms = append(p.rooms, r)
	}
	for len(p.rooms) > n {
		last := len(p.rooms) - 1
		require.NoError(p.t, p.rooms[last].Release(context.Background()))
		p.rooms = p.rooms[:last]
	}
}

// shows checks the game server after d.
func (p *program) shows(d time.Duration, state, label string, count int) {
	p.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	g := p.fake.Server()
	assert.Equal(p.t, []any{state, label, int64(count), int64(3)},
		[]any{g.State, g.Labels[labelKey], g.Count, g.Capacity})
}

// calls returns the number of calls that begin with a text.
func (p *program) calls(text string) (n int) {
	for _, call := range p.fake.Calls() {
		if strings.HasPrefix(call, text) {
			n++
		}
	}
	return n
}

// changes returns the calls, except for those that a link makes again and again.
func (p *program) changes() (list []string) {
	for _, call := range p.fake.Calls() {
		if call != "POST /health {}" && call != "GET /gameserver" {
			list = append(list, call)
		}
	}
	return list
}

// logged returns the errors that the log got since the last call.
func (p *program) logged() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.logs
	p.logs = nil
	return list
}

// long is a time in which a link that does too much, or too little, shows it.
const long = 3 * time.Minute

// soon is the time in which the sidecar knows of a change, and heal the time in which it does after
// calls that failed, or were lost.
const (
	soon = 2 * time.Second
	heal = retryMost + checkEvery + soon
)

// Rooms that are taken and released move the state, the counter and the label, each call once.
func TestLink(t *testing.T) {
	inProgram(t, func(t *testing.T, p *program) {
		p.shows(soon, "Ready", "free", 0)
		p.use(1)
		p.shows(soon, "Allocated", "free", 1)
		p.use(3)
		p.shows(soon, "Allocated", "full", 3)
		p.shows(long, "Allocated", "full", 3)
		p.use(2)
		p.shows(soon, "Allocated", "free", 2)
		p.use(0)
		p.shows(soon, "Ready", "free", 0)
		assert.Equal(t, []string{"POST /ready {}", `PATCH /v1beta1/counters/rooms {"capacity":"3"}`,
			`PUT /metadata/label {"key":"rooms","value":"free"}`, `PATCH /v1beta1/counters/rooms {"count":"0"}`,
			"POST /allocate {}", `PATCH /v1beta1/counters/rooms {"count":"1"}`,
			`PATCH /v1beta1/counters/rooms {"count":"3"}`, `PUT /metadata/label {"key":"rooms","value":"full"}`,
			`PATCH /v1beta1/counters/rooms {"count":"2"}`, `PUT /metadata/label {"key":"rooms","value":"free"}`,
			"POST /ready {}", `PATCH /v1beta1/counters/rooms {"count":"0"}`},
			p.changes())
		assert.Empty(t, p.logged())
	})
}

// Health is sent twice in a period, and only while the heartbeat moves.
func TestHealth(t *testing.T) {
	// Without a period, it is Agones' default.
	for period, want := range map[int]int{1: 120, 3: 40, 60: 2, 0: 24} {
		inProgram(t, func(t *testing.T, p *program) {
			p.fake.Change(func(g *sidecar.Server) { g.Period = period })
			time.Sleep(time.Minute)
			before := p.calls("POST /health")
			time.Sleep(time.Minute)
			assert.InDelta(t, want, p.calls("POST /health")-before, float64(want)/6+1, period)
			p.stuck.Store(true)
			time.Sleep(time.Minute)
			before = p.calls("POST /health")
			time.Sleep(long)
			assert.Equal(t, before, p.calls("POST /health"))
			p.stuck.Store(false)
			time.Sleep(soon)
			assert.Greater(t, p.calls("POST /health"), before)
			p.fake.Change(func(g *sidecar.Server) { g.NoHealth = true })
			time.Sleep(checkEvery + soon)
			before = p.calls("POST /health")
			time.Sleep(long)
			assert.Equal(t, before, p.calls("POST /health"))
			assert.Empty(t, p.logged())
		})
	}
}

// A call that hangs delays Health by no more than its limit.
func TestHealthBesideHangs(t *testing.T) {
	inProgram(t, func(t *testing.T, p *program) {
		p.shows(soon, "Ready", "free", 0) // else the first calls may be before the hangs
		var last, longest atomic.Int64
		began := time.Now()
		p.fake.Instead(func(w http.ResponseWriter, r *http.Request) {
			if _, _ = io.Copy(io.Discard, r.Body); r.URL.Path != "/health" {
				<-r.Context().Done()
				return
			}
			now := int64(time.Since(began))
			longest.Store(max(longest.Load(), now-last.Swap(now)))
			_, _ = io.WriteString(w, "{}")
		})
		p.use(3)
		time.Sleep(long)
		assert.LessOrEqual(t, time.Duration(longest.Load()), defaultPeriod/2+callTimeout+pollEvery)
		assert.Greater(t, p.calls("POST /health"), 30)
		assert.Len(t, p.logged(), 4)
	})
}

// A fleet without counters is logged once, and all else goes on.
func TestNoCounters(t *testing.T) {
	inProgram(t, func(t *testing.T, p *program) {
		p.fake.Change(func(g *sidecar.Server) { g.Counters = false })
		p.use(3)
		time.Sleep(long)
		synctest.Wait()
		g := p.fake.Server()
		assert.Equal(t, []any{"Allocated", "full"}, []any{g.State, g.Labels[labelKey]})
		assert.Equal(t, []string{`agones: PATCH /v1beta1/counters/rooms: status 500: "CountsAndLists not enabled"`},
			p.logged())
		assert.Less(t, p.calls("PATCH"), 40)
		p.fake.Change(func(g *sidecar.Server) { g.Counters = true })
		p.shows(heal, "Allocated", "full", 3)
		assert.Empty(t, p.logged())
	})
}

// bad has the ways in which a sidecar is unwell.
var bad = map[string]http.HandlerFunc{
	"never":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	"500":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
	"garbage": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "\x00\xff{") },
	"null":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "null") },
	"redirects": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path, http.StatusPermanentRedirect)
	},
	"closes": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	"half a line": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"name":"ro`)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	},
	"after a minute": func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute):
			_, _ = io.WriteString(w, "{}")
		}
	},
	"another's counter": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"name":"lilies","count":"1","capacity":"3"}`)
	},
	"agrees to all": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") },
}

// instead makes the sidecar be unwell; nil ends that. Bodies are read first, as Agones does, so
// that the server sees the end of a connection.
func (p *program) instead(answer http.HandlerFunc) {
	if answer == nil {
		p.fake.Instead(nil)
		return
	}
	p.fake.Instead(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answer(w, r)
	})
}

// After each kind of fault the sidecar knows the newest numbers; the log has a line or two for each
// kind of call.
func TestUnwell(t *testing.T) {
	for name, answer := range bad {
		t.Run(name, func(t *testing.T) {
			inProgram(t, func(t *testing.T, p *program) {
				p.shows(soon, "Ready", "free", 0)
				p.instead(answer)
				p.use(1)
				time.Sleep(10 * time.Second)
				p.use(3)
				time.Sleep(time.Minute)
				p.use(2)
				before := len(p.fake.Calls())
				time.Sleep(long)
				assert.Less(t, len(p.fake.Calls())-before, int(3*long.Seconds()))
				assert.Greater(t, p.calls("POST /health"), int(long.Seconds()/8))
				p.instead(nil)
				p.shows(heal, "Allocated", "free", 2)
				told := p.logged()
				assert.NotEmpty(t, told)
				assert.LessOrEqual(t, len(told), 6, told)
				p.use(0)
				p.shows(heal, "Ready", "free", 0)
				assert.Empty(t, p.logged())
			})
		})
	}
}

// A program without a sidecar plays on.
func TestNoSidecar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openRooms(t, 2)
		c, unplug := dial(t, http.NotFoundHandler())
		unplug()
		var ticks atomic.Uint64
		var told []string
		l, err := c.Link(b, "room", Options{Ticks: func() uint64 {
			return ticks.Add(1)
		}, InUse: func() int { return 7 }, Capacity: 1,
			Log: func(err error) { told = append(told, err.Error()) }})
		require.NoError(t, err)
		time.Sleep(long)
		l.Drain()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		assert.EqualError(t, l.Shutdown(ctx), "agones: POST /shutdown: connection refused")
		assert.Equal(t, time.Minute, time.Since(began))
		slices.Sort(told)
		assert.Equal(t, []string{"agones: GET /gameserver: connection refused",
			"agones: PATCH /v1beta1/counters/rooms: connection refused", "agones: POST /allocate: connection refused",
			"agones: POST /health: connection refused", "agones: PUT /metadata/label: connection refused"}, told)
	})
}

// A state that isn't the accepted one is asked for again after each look, and logged once.
func TestAnotherState(t *testing.T) {
	inProgram(t, func(t *testing.T, p *program) {
		p.use(1)
		p.shows(soon, "Allocated", "free", 1)
		for range 3 {
			p.fake.Change(func(g *sidecar.Server) { g.State = "Ready" })
			p.shows(checkEvery+soon, "Allocated", "free", 1)
		}
		assert.Equal(t,
			[]string{`agones: the game server is "Ready": the sidecar accepted Allocated, and is asked again`},
			p.logged()[:1])
		p.shows(heal, "Allocated", "free", 1)
		p.logged()
		asked := p.calls("POST /allocate")
		// A sidecar accepts all, and does nothing.
		p.fake.Instead(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w,
				`{"object_meta":{},"status":{"state":"Ready"},"name":"rooms","count":"1","capacity":"3"}`)
		})
		time.Sleep(long)
		assert.InDelta(t, long.Seconds()/checkEvery.Seconds(), p.calls("POST /allocate")-asked, 20)
		assert.Len(t, p.logged(), 1)
		p.fake.Instead(nil)
		p.shows(heal, "Allocated", "free", 1)
		p.use(0)
		p.shows(soon, "Ready", "free", 0)
		p.logged()

		// Agones allocates it, and no player comes; a program reserves it.
		before := p.changes()
		for _, state := range []string{"Allocated", "Reserved", "RequestReady"} {
			p.fake.Change(func(g *sidecar.Server) { g.State, g.Allocations = state, g.Allocations+1 })
			p.shows(long, state, "free", 0)
		}
		assert.Equal(t, before, p.changes())
		assert.Empty(t, p.logged())
		// A sidecar that restarted before the call reached Kubernetes.
		p.fake.Change(func(g *sidecar.Server) { g.State = "Scheduled" })
		p.shows(checkEvery+soon, "Ready", "free", 0)
		assert.Len(t, p.logged(), 1)
		// Agones gave the server up.
		before = p.changes()
		p.fake.Change(func(g *sidecar.Server) { g.State = "Unhealthy" })
		p.shows(long, "Unhealthy", "free", 0)
		assert.Equal(t, before, p.changes())
		assert.Equal(t, []string{`agones: the game server is "Unhealthy": Agones removes it`}, p.logged())
	})
}

// A sidecar that accepts Ready and restarts loses it. The link repeats Ready, and undoes no
// allocation that came after it.
func TestReadyLost(t *testing.T) {
	inProgram(t, func(t *testing.T, p *program) {
		lose := func(allocations int) {
			p.fake.Change(func(g *sidecar.Server) { g.State, g.Allocations = allocated, g.Allocations+allocations })
		}
		for range 3 {
			p.use(1)
			p.shows(checkEvery+soon, "Allocated", "free", 1)
			p.use(0)
			p.shows(soon, "Ready", "free", 0)
			lose(0)
			p.shows(checkEvery+soon, "Ready", "free", 0)
			lose(0)
			p.shows(checkEvery+soon, "Ready", "free", 0)
			p.shows(checkEvery+soon, "Ready", "free", 0)
			assert.Equal(t,
				[]string{`agones: the game server is "Allocated": the sidecar accepted Ready, and is asked again`},
				p.logged())
			lose(1)
			before := p.changes()
			p.shows(long, "Allocated", "free", 0)
			assert.Equal(t, before, p.changes())
		}
		// The players of the last allocation come and go.
		p.use(1)
		p.shows(checkEvery+soon, "Allocated", "free", 1)
		p.use(0)
		p.shows(long, "Ready", "free", 0)
		assert.Empty(t, p.logged())
	})
}

// A counter and a label that were lost, or that another wrote, are written again.
func TestLost(t *testing.T) {
	inProgram(t, func(t *testing.T, p *program) {
		p.use(2)
		p.shows(soon, "Allocated", "free", 2)
		p.fake.Change(func(g *sidecar.Server) { g.Count, g.Capacity, g.Labels = 9, 10, nil })
		p.shows(checkEvery+soon, "Allocated", "free", 2)
		p.fake.Change(func(g *sidecar.Server) { g.Count, g.Labels = 3, map[string]string{labelKey: "full"} })
		p.shows(checkEvery+soon, "Allocated", "free", 2)
		assert.Empty(t, p.logged())
	})
}

// A counter that lags is set again until it is right, and logged once.
func TestLag(t *testing.T) {
	inProgram(t, func(t *testing.T, p *program) {
		p.shows(soon, "Ready", "free", 0)
		p.fake.Instead(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w,
				`{"object_meta":{"labels":{"agones.dev/sdk-rooms":"free"}},"status":{"state":"Ready","counters":`+
					`{"rooms":{"count":"0","capacity":"3"}}},"name":"rooms","count":"0","capacity":"3"}`)
		})
		p.use(2)
		time.Sleep(time.Minute)
		assert.Contains(t, p.logged(), `agones: the count of the counter "rooms" was set to 2, and is 0`)
		calls := p.calls("PATCH")
		time.Sleep(long)
		assert.Empty(t, p.logged())
		assert.InDelta(t, long.Seconds()/retryMost.Seconds(), p.calls("PATCH")-calls, 10)
		p.fake.Instead(nil)
		p.shows(heal, "Allocated", "free", 2)
	})
}

// A server that drains isn't made ready when its last room is free. Shutdown is the last call.
func TestDrain(t *testing.T) {
	inProgram(t, func(t *testing.T, p *program) {
		p.use(3)
		p.shows(soon, "Allocated", "full", 3)
		p.link.Drain()
		p.shows(soon, "Allocated", "draining", 3)
		health, ready := p.calls("POST /health"), p.calls("POST /ready")
		p.use(1)
		p.shows(time.Minute, "Allocated", "draining", 1)
		p.use(0)
		p.shows(time.Minute, "Allocated", "draining", 0)
		assert.Greater(t, p.calls("POST /health"), health+2*12)
		require.NoError(t, p.link.Shutdown(t.Context()))
		p.shows(long, "Shutdown", "draining", 0)
		calls := p.fake.Calls()
		assert.Equal(t, "POST /shutdown {}", calls[len(calls)-1])
		assert.Equal(t, ready, p.calls("POST /ready"))
		assert.Empty(t, p.logged())
		p.link.Close() // again
	})
}

// A drain while a call hangs: Shutdown cuts it off.
func TestDrainWhileAllocating(t *testing.T) {
	inProgram(t, func(t *testing.T, p *program) {
		p.shows(soon, "Ready", "free", 0)
		hangs := make(chan struct{})
		p.fake.Instead(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if r.URL.Path == "/allocate" {
				hangs <- struct{}{}
				<-r.Context().Done()
				return
			}
			_, _ = io.WriteString(w, "{}")
		})
		p.use(1)
		<-hangs
		p.link.Drain()
		began := time.Now()
		require.NoError(t, p.link.Shutdown(t.Context()))
		assert.Zero(t, time.Since(began))
		calls := p.fake.Calls()
		assert.Equal(t, []string{"POST /allocate {}", "POST /shutdown {}"}, calls[len(calls)-2:])
	})
}

// Shutdown is tried until the sidecar answers.
func TestShutdownAgain(t *testing.T) {
	inProgram(t, func(t *testing.T, p *program) {
		p.shows(soon, "Ready", "free", 0)
		p.instead(bad["500"])
		time.AfterFunc(time.Minute, func() { p.instead(nil) })
		began := time.Now()
		require.NoError(t, p.link.Shutdown(t.Context()))
		assert.Equal(t, "Shutdown", p.fake.Server().State)
		assert.InDelta(t, 60, time.Since(began).Seconds(), retryMost.Seconds())
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		assert.ErrorIs(t, p.link.Shutdown(ended), context.Canceled)
	})
}

func TestOptions(t *testing.T) {
	b := openRooms(t, 3)
	ticks := func() uint64 { return 0 }
	c := New("x")
	for want, o := range map[string]Options{
		"Options.Ticks is missing":                               {},
		"Options.Capacity is -1: region room has 3 slots":        {Ticks: ticks, Capacity: -1},
		"agones: Options.Capacity is 4: region room has 3 slots": {Ticks: ticks, Capacity: 4},
	} {
		l, err := c.Link(b, "room", o)
		assert.ErrorContains(t, err, want)
		assert.Nil(t, l)
	}
	assert.PanicsWithValue(t, `budget: BUG: plan "pond" has no region "lobby" with slots; it has room`,
		func() { _, _ = c.Link(b, "lobby", Options{Ticks: ticks}) })
}

// After rooms, faults and losses in any order the sidecar knows all once it is well. It never got a
// call that the protocol doesn't have.
func TestRandom(t *testing.T) {
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range bad {
			if !yield(name) {
				return
			}
		}
	})
	for seed := range step.Pick[uint64](8, 100, 2000) {
		inProgram(t, func(t *testing.T, p *program) {
			random := rand.New(rand.NewPCG(seed, 0))
			for range 40 {
				switch random.IntN(5) {
				case 0:
					p.instead(bad[names[random.IntN(len(names))]])
				case 1:
					p.instead(nil)
				case 2:
					p.fake.Change(func(g *sidecar.Server) {
						g.Count, g.Capacity, g.Labels, g.State = 0, 10, nil,
							[]string{"Ready", "Scheduled"}[random.IntN(2)]
					})
				default:
					p.use(random.IntN(4))
				}
				time.Sleep(time.Duration(random.IntN(10_000)) * time.Millisecond)
			}
			p.instead(nil)
			n := random.IntN(4)
			p.use(n)
			p.shows(heal, []string{"Ready", "Allocated"}[min(n, 1)], []string{"free", "full"}[n/3], n)
			assert.False(t, t.Failed(), seed)
		})
	}
}

// The program's calls wait for no sidecar, and a link that has nothing to send allocates nothing.
func TestNoWait(t *testing.T) {
	inProgram(t, func(t *testing.T, p *program) {
		p.instead(bad["never"])
		began := time.Now()
		for n := range 1000 {
			p.use(n % 4)
		}
		p.link.Drain()
		assert.Zero(t, time.Since(began))
	})
	b := openRooms(t, 3)
	l := &Link{c: New("x"), o: Options{Ticks: func() uint64 {
		return 0
	}, InUse: func() int { return 3 - b.Slots("room").Available() }}, capacity: 3}
	l.ctx = t.Context()
	l.duties = []*duty{{needed: l.alive}, {needed: func() bool { return l.counter() != Counter{0, 3} }}}
	assert.Zero(t, testing.AllocsPerRun(100, func() { l.work() }))
}

//go:build linux

package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/client"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/disk"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom/doomtest"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
	"github.com/upfront-mem/upfront/tests/step"
)

// If a room panics, or its tick runs out of memory, only this room ends. Its players get a notice
// and join again. The other room's players play on.
func TestRoomEnds(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"panic", "full"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			records := t.TempDir()
			s := begin(t, func(o *Options) {
				require.NoError(t, o.Plant.Set(kind+":1:40"))
				o.Inputs = records
			})
			well := s.joins(client.Options{Name: "well", Room: 0, Seed: 1})
			ill := s.joins(client.Options{Name: "ill", Room: 1, Seed: 2})
			s.until("the room ends", ill.with(func(c *client.Client) bool { return c.RoomsEnded == 1 }))
			s.until("who was in it plays again", ill.sees(20))
			s.until("the other plays", well.sees(20))
			assert.Zero(t, well.RoomsEnded+well.Losses+well.WrongStates+ill.WrongStates)
			well.leave()
			ill.leave()
			r := s.end()
			assert.EqualValues(t, 1, r.Faults)
			assert.Contains(t, s.said.String(), "room 1: MAP02 is over at tick 40: ")
			assert.Equal(t, []string{"MAP01", "MAP03"}, r.Maps, "the next map")
			files, err := disk.Records(records)
			require.NoError(t, err)
			assert.Len(t, files, 3)
		})
	}
}

// A load delays no tick: the next map loads into a slot of its own, and the players go on in it.
func TestMapsRotate(t *testing.T) {
	t.Parallel()
	s := begin(t, func(o *Options) { o.MapTime, o.Rooms = time.Second, 1 })
	p := s.joins(client.Options{Name: "rotates", Room: -1, Seed: 1})
	for _, name := range []string{"MAP01", "MAP02", "MAP03"} {
		s.until(name+", or a later one", p.with(func(c *client.Client) bool {
			return c.Map() >= name && c.View() != nil
		}))
	}
	p.leave()
	r := s.end()
	assert.Zero(t, p.WrongStates+p.Losses+p.RoomsEnded)
	assert.Zero(t, r.Faults+r.Unloaded+r.TimedOut)
	assert.GreaterOrEqual(t, r.Ticks, uint64(2*35), "and it played all the while")
}

// A map that doesn't fit its slot isn't played. The current map goes on until another map is
// loaded.
func TestMapTooLarge(t *testing.T) {
	step.Needs(t, step.Check)
	t.Parallel()
	s := begin(t, func(o *Options) {
		o.MapTime, o.Rooms, o.Maps, o.Snapshots = time.Second, 1, "MAP11,MAP08,MAP10", o.Rollback+1
		size := slotFor(t, o, "MAP11", "MAP10", "MAP08")
		o.Plan = func() (budget.Plan, error) {
			plan := smallPlan(2)
			plan.Regions[2].Size = size
			return plan, nil
		}
	})
	p := s.joins(client.Options{Name: "small", Room: -1, Seed: 1})
	for _, name := range []string{"MAP10", "MAP11", "MAP10"} { // MAP08 is tried twice
		s.until(name, p.with(func(c *client.Client) bool { return c.Map() == name && c.View() != nil }))
	}
	p.leave()
	r := s.end()
	assert.GreaterOrEqual(t, r.Unloaded, uint64(2))
	assert.Equal(t, 1, strings.Count(s.said.String(), "MAP08 isn't played"), "and reported once")
	assert.Zero(t, r.Faults+p.Losses+p.WrongStates)
	assert.Regexp(t, `room 0: MAP08 isn't played: .*region level\b.* is full: .*raise regions\[2\]\.size`,
		s.said.String())
}

// A server listens after it has loaded its rooms: no packet waits for the load.
func TestListensLast(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	o := *s.o
	o.Address, o.Inputs = s.address.String(), t.TempDir()
	_, err := Run(t.Context(), &o)
	assert.ErrorContains(t, err, "address already in use")
	files, err := disk.Records(o.Inputs)
	require.NoError(t, err)
	assert.Len(t, files, 2)
	s.end()
}

// A lost socket ends the server, with its rooms saved.
func TestSocketGone(t *testing.T) {
	step.Needs(t, step.Check)
	t.Parallel()
	dir := t.TempDir()
	s := begin(t, func(o *Options) {
		require.NoError(t, o.Plant.Set("socket:0:30"))
		o.Saves = dir
	})
	s.joins(client.Options{Name: "cut off", Room: 0, Seed: 1})
	<-s.ended
	require.Error(t, s.err)
	assert.NotEmpty(t, s.result.Hash)
	saves, err := disk.OpenSaves(dir, 2)
	require.NoError(t, err)
	defer saves.Close()
	h, _, found, err := saves.Read(0)
	require.NoError(t, err)
	assert.True(t, found)
	assert.GreaterOrEqual(t, h.Tick, uint32(30))
}

func TestDiskFull(t *testing.T) {
	step.Needs(t, step.Check)
	t.Parallel()
	dir := t.TempDir()
	// The temporary names of a room's saves.
	for _, name := range []string{"room-00.a.new", "room-00.b.new"} {
		require.NoError(t, os.Symlink("/dev/full", filepath.Join(dir, name)))
	}
	s := begin(t, func(o *Options) {
		o.Rooms, o.Saves, o.Scores, o.SaveEvery = 1, dir, "/dev/full", 100*time.Millisecond
	})
	p := s.joins(client.Options{Name: "plays on", Room: 0, Seed: 1})
	// A save fails first, or the sync of the scores.
	refused := regexp.MustCompile(`(no space left on device|sync /dev/full: invalid argument); play goes on`)
	s.until("the disk refuses", func() bool { return refused.MatchString(s.said.String()) })
	s.until("it plays", p.sees(20))
	assert.Zero(t, p.Losses+p.WrongStates)
	p.leave()
	s.stop()
	<-s.ended
	require.NotNil(t, s.result)
	assert.NotZero(t, s.result.Lost)
}

// After a restart, rooms go on from their saves. Players that join by the same name go on at their
// place.
func TestGoesOn(t *testing.T) {
	step.Needs(t, step.Check)
	t.Parallel()
	dir := t.TempDir()
	saved := func(o *Options) { o.Saves, o.SaveEvery = dir, 200*time.Millisecond }
	s := begin(t, saved)
	p := s.joins(client.Options{Name: "comes again", Room: 1, Seed: 1})
	s.until("it plays", p.saw(60))
	s.until("a save", func() bool { return isThere(filepath.Join(dir, "room-01.b")) })
	var at wire.Self
	p.with(func(c *client.Client) bool { at = c.View().Self; return true })()
	p.stops()
	s.o.Drain = 0
	first := s.end()
	require.NotZero(t, first.TickCount[1])

	s = begin(t, saved)
	again := s.joins(client.Options{Name: "comes again", Room: 1, Seed: 2})
	s.until("it plays", again.saw(1))
	again.with(func(c *client.Client) bool {
		assert.Greater(t, c.View().Tick, first.TickCount[1])
		assert.Less(t, max(abs(c.View().Self.X-at.X), abs(c.View().Self.Y-at.Y))>>16, int32(8*200))
		return true
	})()
	again.stops()
	second := s.end()
	assert.Equal(t, first.Hash[0], second.Hash[0], "nobody played there")

	other := *s.o
	other.Maps = "MAP05"
	_, err := Run(t.Context(), &other)
	assert.ErrorContains(t, err, "room 0: its save: it is of MAP01, which isn't among the maps")
	other = *s.o
	other.Seed = 2 // another seed builds other maps of the same names
	_, err = Run(t.Context(), &other)
	assert.ErrorContains(t, err, "room 0: its save: it is of a map MAP01 of sum 0x")
	assert.ErrorContains(t, err, ", and that in builtin has sum 0x")
}

func abs(v int32) int32 { return max(v, -v) }

func isThere(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// A client that proves its session goes on from another address.
func TestReconnect(t *testing.T) {
	step.Needs(t, step.Check)
	t.Parallel()
	s := begin(t, nil)
	p := s.joins(client.Options{Name: "roams", Room: 0, Seed: 1})
	s.until("it plays", p.saw(30))
	other, err := net.DialUDP("udp", nil, s.address)
	require.NoError(t, err)
	p.mu.Lock()
	p.conn.Close() // packets to it are lost from now on
	p.conn = other
	p.mu.Unlock()
	p.receivers.Go(p.receive) // a second later the client asks whether its address changed
	s.until("it plays from there", p.sees(20))
	assert.Zero(t, p.Losses)
	p.leave()
	r := s.end()
	assert.EqualValues(t, 1, r.Joined)
	assert.EqualValues(t, 1, r.Returned)
	assert.NotZero(t, r.Dropped[wire.BadAddress.String()])
}

// A player that is silent for the timeout, here five seconds, loses its place.
func TestTimeOut(t *testing.T) {
	step.Needs(t, step.Check)
	t.Parallel()
	s := begin(t, func(o *Options) { o.Rooms, o.Players, o.Timeout = 1, 1, 5*time.Second })
	p := s.joins(client.Options{Name: "first", Room: -1, Seed: 1})
	s.until("it plays", p.saw(10))
	second := s.joins(client.Options{Name: "second", Room: -1, Seed: 2})
	s.until("it is refused, with numbers", second.with(func(c *client.Client) bool {
		f := c.Refusal()
		return f != nil && f.Reason == wire.ServerFull && f.Players == 1 && f.Places == 1 && f.Rooms == 1
	}))
	p.stops()
	s.until("it gets the place", second.saw(10))
	second.leave()
	r := s.end()
	assert.EqualValues(t, 2, r.Joined)
	assert.EqualValues(t, 1, r.TimedOut)
	assert.NotZero(t, r.Refused)
}

// After the signal joins are refused. Players get a notice, and may go on for a while.
func TestDrain(t *testing.T) {
	step.Needs(t, step.Check)
	t.Parallel()
	s := begin(t, func(o *Options) { o.Drain = time.Hour })
	p := s.joins(client.Options{Name: "in", Room: 0, Seed: 1})
	s.until("it plays", p.saw(10))
	s.stop()
	s.until("it is told", p.with(func(c *client.Client) bool {
		left, closing := c.Closing()
		return closing && left > 30
	}))
	late := s.joins(client.Options{Name: "late", Room: -1, Seed: 2})
	s.until("it is refused", late.with(func(c *client.Client) bool {
		f := c.Refusal()
		return f != nil && f.Reason == wire.ServerCloses
	}))
	s.until("it plays on", p.sees(30))
	p.leave() // the last player: the server ends at once
	<-s.ended
	assert.NoError(t, s.err)
}

// The server opens another plan when it is empty. The region init stays; systems and rooms are new.
// If the plan fails, the old one stays.
func TestAnotherPlan(t *testing.T) {
	t.Parallel()
	reload, size := make(chan os.Signal, 1), uint64(0)
	s := begin(t, func(o *Options) {
		o.Rooms, o.Reload = 1, reload
		o.Plan = func() (budget.Plan, error) {
			plan := smallPlan(2)
			plan.Regions[1].Size += 2 * size
			plan.Regions[2].Size -= size
			size += 64 * budget.KiB
			if size > 128*budget.KiB {
				return plan, errors.New("no such plan")
			}
			return plan, nil
		}
	})
	p := s.joins(client.Options{Name: "plays", Room: -1, Seed: 1})
	s.until("it plays", p.saw(10))
	reload <- os.Interrupt
	s.until("it plays on", p.sees(20))
	assert.Equal(t, 1, strings.Count(s.said.String(), "players on"))
	p.leave()
	for n := 2; n <= 3; n++ {
		s.until("it listens again", func() bool { return strings.Count(s.said.String(), "players on") == n })
		q := s.joins(client.Options{Name: "plays again", Room: -1, Seed: uint64(n)})
		s.until("it plays", q.saw(10))
		assert.Zero(t, q.WrongStates)
		q.leave()
		reload <- os.Interrupt
	}
	s.until("the third plan", func() bool { return strings.Count(s.said.String(), "players on") == 4 })
	r := s.end()
	assert.Equal(t, 4, r.Plans)
	assert.EqualValues(t, 3, r.Joined)
	assert.Contains(t, s.said.String(), "another plan: no such plan; the old one stays")
}

// If no map fits in another plan, the old one stays.
func TestPlanTooSmall(t *testing.T) {
	step.Needs(t, step.Check)
	t.Parallel()
	reload, plans := make(chan os.Signal, 1), 0
	s := begin(t, func(o *Options) {
		o.Rooms, o.Reload = 2, reload
		o.Plan = func() (budget.Plan, error) {
			plan := smallPlan(3)
			switch plans++; plans {
			case 2:
				plan.Regions[1].Size, plan.Regions[2].Size = 19*budget.MiB-3*64*budget.KiB, 64*budget.KiB
			case 3:
				plan.Regions[1].Size, plan.Regions[2].Size = budget.MiB, 6*budget.MiB
			}
			return plan, nil
		}
	})
	for n := 2; n <= 3; n++ {
		reload <- os.Interrupt
		s.until("it listens again", func() bool { return strings.Count(s.said.String(), "players on") == n })
		p := s.joins(client.Options{Name: "plays on", Room: -1, Seed: uint64(n)})
		s.until("it plays", p.saw(10))
		p.leave()
	}
	s.end()
	assert.Contains(t, s.said.String(), "none of the maps fits into its slot; the old one stays")
	assert.Contains(t, s.said.String(), "region systems is full")
}

// A signal while another plan is opened ends the server as usual.
func TestSignalAtReload(t *testing.T) {
	t.Parallel()
	reload, signal := make(chan os.Signal, 1), make(chan func(), 1)
	s := begin(t, func(o *Options) {
		o.Rooms, o.Reload = 1, reload
		o.Plan = func() (budget.Plan, error) {
			select {
			case stop := <-signal:
				stop()
			default:
			}
			return smallPlan(2), nil
		}
	})
	signal <- s.stop
	reload <- os.Interrupt
	<-s.ended
	require.NoError(t, s.err, s.said.String())
	assert.Equal(t, 2, s.result.Plans)
	assert.NotEmpty(t, s.result.Hash)
}

// Probes are answered from the start to the end, also while the server drains.
func TestHealth(t *testing.T) {
	t.Parallel()
	s := begin(t, func(o *Options) { o.Health = "127.0.0.1:0"; o.Drain = time.Hour })
	url := regexp.MustCompile(`http://[^/]+`).FindString(s.said.String())
	// answers waits for the answer, because a late tick on a busy machine makes the server
	// unhealthy.
	answers := func(path string, code int, want string) {
		s.until(fmt.Sprint(path, " ", code), func() bool {
			answer, err := http.Get(url + path)
			if err != nil {
				return false
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			return err == nil && answer.StatusCode == code && string(text) == want
		})
	}
	answers("/readyz", 200, "ok: 0 of 8 players, 0 of 2 rooms\n")
	p := s.joins(client.Options{Name: "in", Room: 0, Seed: 1})
	s.until("it plays", p.saw(10))
	answers("/healthz", 200, "ok\n")
	answers("/readyz", 200, "ok: 1 of 8 players, 1 of 2 rooms\n")
	answers("/gameserver", 404, "404 page not found\n")
	s.stop()
	answers("/readyz", 503, "draining\n")
	answers("/healthz", 200, "ok\n")
	p.leave()
	<-s.ended
	assert.NoError(t, s.err)
}

// A worker that hangs, and a server that failed, aren't well.
func TestUnwell(t *testing.T) {
	s := &Server{began: time.Now().Add(-time.Hour)}
	assert.Empty(t, s.unwell(), "it loads")
	assert.Equal(t, "loading", s.unready())
	s.serving.Store(true)
	assert.Contains(t, s.unwell(), "a worker's last tick began 1h0m")
	s.workers = []*worker{{}, {}}
	s.workers[0].alive.Store(s.now())
	s.workers[1].alive.Store(s.now() - time.Minute)
	s.o, s.net = &Options{}, &network{}
	s.takePulse()
	assert.Contains(t, s.unwell(), "a worker's last tick began 1m0")
	s.workers[1].alive.Store(s.now() + time.Hour)
	s.workers[0].alive.Store(s.now() + time.Hour)
	s.takePulse()
	assert.Empty(t, s.unwell())
	assert.Empty(t, s.unready())
	s.broken(errors.New("the network is gone"))
	assert.Contains(t, s.unwell(), "the network is gone")
}

// A signal just after the start ends the server: no goroutine waits for a service that is over.
func TestSignalAtTheStart(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	s.end()
	o := *s.o
	o.Say = &said{}
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		o.Warm = cancel // after the load, before the server serves
		result, err := Run(ctx, &o)
		assert.NoError(t, err)
		assert.NotNil(t, result)
	}
}

// If another program has the health port, the server prints only that, and doesn't start.
func TestHealthPortTaken(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	s := begin(t, nil)
	s.end()
	o := *s.o
	said := &said{}
	o.Say, o.Health = said, taken.Addr().String()
	result, err := Run(t.Context(), &o)
	assert.Nil(t, result)
	assert.EqualError(t, err, "-health: listen tcp "+o.Health+": bind: address already in use")
	assert.Empty(t, said.String())
}

// Options that the plan has no room for are refused before the start, with the key to raise.
func TestRefusedOptions(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(o *Options){
		`regions\[2\]\.slots is 3.*raise it to 6`: func(o *Options) { o.Rooms = 5 },
		`scratch\.workers is 3.*raise it to 5`:    func(o *Options) { o.Workers = 4 },
		`region systems is full: .*regions\[1\]`:  func(o *Options) { o.Players = 16; small(o, 1, budget.MiB) },
		`none of the maps fits`:                   func(o *Options) { small(o, 2, 64*budget.KiB) },
		`needs init, systems, level`:              func(o *Options) { rename(o) },
	} {
		o := &Options{Address: "127.0.0.1:0", Rooms: 2, Players: 4, Rollback: 8, Bytes: 480, Every: 1,
			MapTime:   time.Hour,
			SaveEvery: time.Hour, Say: &said{}}
		o.WADs, o.Maps, o.Log, o.Workers, o.Snapshots = []string{"builtin"}, "all", os.DevNull, 2, 9
		o.Plan = func() (budget.Plan, error) { return smallPlan(3), nil }
		change(o)
		result, err := Run(t.Context(), o)
		assert.Nil(t, result)
		if assert.Error(t, err, want) {
			assert.Regexp(t, want, strings.ReplaceAll(err.Error(), "\n", " "))
		}
	}
}

func small(o *Options, region int, size uint64) {
	o.Plan = func() (budget.Plan, error) {
		plan := smallPlan(3)
		plan.Regions[region].Size = size
		return plan, nil
	}
}

func rename(o *Options) {
	o.Plan = func() (budget.Plan, error) {
		plan := smallPlan(3)
		plan.Regions[1].Name = "net"
		return plan, nil
	}
}

// slotFor returns the size of a slot in which two maps fit and a third doesn't.
func slotFor(t *testing.T, o *Options, fit1, fit2, larger string) uint64 {
	size := func(name string) uint64 {
		plan := smallPlan(1)
		b, err := budget.Open(plan)
		require.NoError(t, err)
		defer b.Close()
		s := &Server{o: o, b: b, began: time.Now()}
		s.game, err = game.Open(t.Context(), o.Options, b)
		require.NoError(t, err)
		l := &loader{s: s, crew: game.Alone(b, 0), slots: b.Slots("level")}
		for _, m := range s.game.Maps {
			if m.Name == name {
				r := &room{s: s}
				p, err := l.load(r, m, 0, nil)
				require.NoError(t, err)
				used := p.region.Report().LoadPeak
				require.NoError(t, p.region.Release(t.Context()))
				return used
			}
		}
		t.Fatal(name)
		return 0
	}
	fits := (max(size(fit1), size(fit2)) + 65535) &^ 65535
	require.Greater(t, size(larger), fits, "choose other maps")
	return fits
}

// If two files have a map of one name, rooms play the later file's, also after a restart.
func TestLaterFilesReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var wads []string
	for name, lumps := range map[string][]doom.Lump{"first.wad": doomtest.GoodMap(),
		"second.wad": doomtest.OtherMap()} {
		wads = append(wads, filepath.Join(dir, name))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), doom.MakeWAD(lumps), 0o644))
	}
	slices.Sort(wads)
	saved := func(o *Options) { o.WADs, o.Saves = wads, filepath.Join(dir, "saves") }
	s := begin(t, saved)
	first := s.end()
	assert.Equal(t, []string{"MAP01", "MAP01"}, first.Maps)
	assert.Contains(t, s.said.String(), "frogpond: "+wads[1]+" replaces MAP01 of "+wads[0]+"\n")
	assert.Equal(t, first.Hash, begin(t, saved).end().Hash)
}

// Requests for health while another plan is opened don't read released memory.
func TestHealthAtReload(t *testing.T) {
	t.Parallel()
	reload, plans := make(chan os.Signal, 1), 0
	s := begin(t, func(o *Options) {
		o.Rooms, o.Reload, o.Health = 1, reload, "127.0.0.1:0"
		o.Plan = func() (budget.Plan, error) {
			plan := smallPlan(2)
			plan.Regions[1].Size += uint64(plans%2) * 8 * budget.MiB
			plans++
			return plan, nil
		}
	})
	url := regexp.MustCompile(`http://[^/]+`).FindString(s.said.String())
	var asking sync.WaitGroup
	var quit atomic.Bool
	var asked atomic.Int32
	asking.Go(func() {
		for !quit.Load() {
			if answer, err := http.Get(url + "/readyz"); err == nil {
				answer.Body.Close()
				asked.Add(1)
			}
		}
	})
	for n := 2; n < 8; n++ {
		reload <- os.Interrupt
		s.until("it listens again", func() bool { return strings.Count(s.said.String(), "players on") == n })
	}
	s.until("an answer", func() bool { return asked.Load() > 0 })
	quit.Store(true)
	asking.Wait()
	s.end()
}

//go:build linux && !race && !asan && !checked && !upfront_cgo

package guide_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
	"github.com/upfront-mem/upfront/scope/container"
	"github.com/upfront-mem/upfront/scope/flow"
)

// A message is a text of the page, and the function that makes the library return, panic with or
// print it. Messages with one mark are in one block.
type message struct {
	mark string
	text func() string
}

type frog struct{ X, Y, Age uint64 }

var (
	ctx       = context.Background()
	frogMaker = scope.Plain[frog]()
	ids       = scope.Plain[uint64]()
)

// pond is a plan in which each message has its place.
func pond() budget.Plan {
	return budget.Plan{
		Name: "pond",
		Regions: []budget.RegionPlan{
			{Name: "systems", Size: 64 * budget.KiB},
			{Name: "level", Size: 64 * budget.KiB},
			{Name: "room", Size: 4 * budget.KiB, Slots: 2, State: true, Waiters: 1},
		},
		Quotas:  []budget.QuotaPlan{{Name: "query", Size: 1000, Tenants: 1, Tenant: 800, Waiters: 2}},
		Frame:   budget.FramePlan{Buffers: 2, Size: 4 * budget.KiB},
		Scratch: budget.ScratchPlan{Workers: 2, Size: 4 * budget.KiB},
		Limits:  budget.Limits{Scopes: 4, Pools: 2, Owned: 2, Labels: 2},
		OnError: func(error) {},
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// of returns the text of an error, which there has to be.
func of(err error) string {
	if err == nil {
		panic(errors.New("no error"))
	}
	return err.Error()
}

// panicOf returns the text of the panic of fn.
func panicOf(fn func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	fn()
	return ""
}

// with returns the text that fn returns for an open budget.
func with(plan budget.Plan, fn func(b *budget.Budget) string) string {
	b := must(budget.Open(plan))
	defer b.Close()
	return fn(b)
}

// onPond returns the function of a message, which calls fn with the open budget of pond.
func onPond(fn func(b *budget.Budget) string) func() string {
	return func() string { return with(pond(), fn) }
}

// inLevel is onPond for the error of a load of region level with fn.
func inLevel(fn func(s scope.Scope) error) func() string {
	return onPond(func(b *budget.Budget) string { return of(load(b.Region("level"), fn)) })
}

func load(r budget.Region, fn func(s scope.Scope) error) error {
	_, err := budget.Load(ctx, r, func(s scope.Scope) (*frog, error) { return nil, fn(s) })
	return err
}

// onScratch is onPond for the error of fn in a scope of a scratch arena.
func onScratch(fn func(s scope.Scope) error) func() string {
	return onPond(func(b *budget.Budget) string { return of(b.Scratch(0, 0).Do("query", fn)) })
}

// full are the messages of requests that were refused for lack of room.
var full = []message{
	{"region", inLevel(func(s scope.Scope) error {
		return scope.Label(s, "frogs", func() error {
			frogMaker.Slice(s, 2000)
			frogMaker.Slice(s, 1000)
			return nil
		})
	})},
	{"temporaries", inLevel(func(s scope.Scope) error { s.Temp(1024).Bytes(2000); return nil })},
	{"scopes", onScratch(func(s scope.Scope) error {
		for {
			s = s.Open("query")
		}
	})},
	{"slots", onPond(func(b *budget.Budget) string {
		must(b.Slots("room").Acquire())
		must(b.Slots("room").Acquire())
		_, err := b.Slots("room").Acquire()
		return of(err)
	})},
	{"slots", onPond(func(b *budget.Budget) string {
		must(b.Slots("room").Acquire())
		must(b.Slots("room").Acquire())
		_, err := b.Slots("room").AcquireWait(&soon{Context: ctx})
		return of(err)
	})},
	{"quota", onPond(func(b *budget.Budget) string {
		_, err := must(b.Quota("query").Tenant("alice")).Reserve(ctx, 900)
		return of(err)
	})},
	{"quota", onPond(func(b *budget.Budget) string {
		r := must(must(b.Quota("query").Tenant("alice")).Reserve(ctx, 700))
		defer r.Release()
		return of(r.Grow(200))
	})},
	{"quota", onPond(func(b *budget.Budget) string {
		r := must(must(b.Quota("query").Tenant("alice")).Reserve(ctx, 700))
		defer r.Release()
		_, err := b.Quota("query").Reserve(&soon{Context: ctx}, 400)
		return of(err)
	})},
	{"quota", onPond(func(b *budget.Budget) string {
		r := must(must(b.Quota("query").Tenant("alice")).Reserve(ctx, 700))
		defer r.Release()
		_, err := b.Quota("query").Tenant("bob")
		return of(err)
	})},
	{"quota", onPond(func(b *budget.Budget) string {
		q := b.Quota("query")
		r := must(q.Reserve(ctx, 700))
		defer r.Release()
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan error)
		go func() {
			_, err := q.Reserve(ctx, 400)
			ended <- err
		}()
		for b.Published().Arena("query").Waits.Waiting == 0 {
			time.Sleep(time.Millisecond)
		}
		_, err := q.Reserve(ctx, 400)
		cancel()
		_ = of(<-ended)
		return of(err)
	})},
	{"lease", onPond(func(b *budget.Budget) string {
		b.Scratch(0, 0)
		must(b.Lease(ctx))
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		_, err := b.Lease(ctx)
		return of(err)
	})},
	{"keys", onScratch(func(s scope.Scope) error {
		names := container.NewStringMap(s, ids, 2, 16)
		return errors.Join(names.Set("a", 1), names.Set("b", 2), names.Set("c", 3))
	})},
	{"keys", onScratch(func(s scope.Scope) error {
		names := container.NewStringMap(s, ids, 2, 4)
		return names.Set("tadpole", 1)
	})},
	{"pinned", inLevel(func(s scope.Scope) error {
		c := cache.New(s, ids, frogMaker, 1)
		must(c.Add(1))
		_, err := c.Add(2)
		return err
	})},
	{"large", inLevel(func(s scope.Scope) error {
		return cache.NewBytes(s, 16*int(budget.KiB), cache.Options{}).Set([]byte("key"), make([]byte, 1<<14))
	})},
	{"ring", inState(func(_ *match, ring *save.Ring) error {
		for tick := range uint64(3) {
			must(0, ring.Take(tick))
		}
		return ring.Restore(ctx, 0)
	})},
	{"warning", func() (text string) {
		plan := pond()
		plan.Regions[1].Warn = 80
		plan.OnWarn = func(w budget.Warning) { text = w.String() }
		with(plan, func(b *budget.Budget) string {
			return fmt.Sprint(load(b.Region("level"), func(s scope.Scope) error {
				return scope.Label(s, "frogs", func() error { frogMaker.Slice(s, 2300); return nil })
			}))
		})
		return text
	}},
	{"limits", func() string {
		return budget.Warning{Arena: "cgroup memory.max",
			Key:  "docker run --memory, systemd MemoryMax (/sys/fs/cgroup/memory.max)",
			Used: 320 * budget.MiB, Size: 256 * budget.MiB,
			Labels: [3]scope.Usage{{Name: "plan", Bytes: 128 * budget.MiB}, {Name: "c_heap", Bytes: 64 * budget.MiB},
				{Name: "go_heap", Bytes: 100 * budget.MiB}},
			Others: [5]scope.Usage{{Name: "page tables", Bytes: budget.MiB}, {Name: "outside", Bytes: 7 * budget.MiB},
				{Name: "other processes", Bytes: 4 * budget.MiB}, {Name: "reserve", Bytes: 16 * budget.MiB}}}.String()
	}},
	{"limits", func() string {
		return budget.Warning{Arena: "cgroup", Key: "go_heap", Size: 100 * budget.MiB,
			Events: platform.LimitEvents{File: "/sys/fs/cgroup/memory.events.local", High: 12,
				Stalled: 7.5}}.String()
	}},
}

// soon is a context that ends when it is waited for.
type soon struct {
	context.Context
	waited bool
}

func (c *soon) Done() <-chan struct{} {
	c.waited = true
	done := make(chan struct{})
	close(done)
	return done
}

func (c *soon) Err() error {
	if c.waited {
		return context.DeadlineExceeded
	}
	return nil
}

// match is the state of region room.
type match struct{ Tick, Score uint64 }

// inState is onPond for the error of fn with a state and its ring of two snapshots.
func inState(fn func(m *match, ring *save.Ring) error) func() string {
	return onPond(func(b *budget.Budget) string {
		m, ring := begin[match](b)
		return of(fn(m, ring))
	})
}

func begin[T any](b *budget.Budget) (root *T, ring *save.Ring) {
	room := must(b.Slots("room").Acquire())
	must(budget.Load(ctx, room, func(s scope.Scope) (*T, error) {
		var state *save.State
		state, root = save.Begin(room, s, scope.Plain[T]())
		ring = save.NewRing(s, 2, state)
		return root, nil
	}))
	return root, ring
}

// refused returns the error of Open for a plan that change spoils.
func refused(change func(plan *budget.Plan)) string {
	plan := pond()
	change(&plan)
	_, err := budget.Open(plan)
	return of(err)
}

// opens are the messages of Open.
var opens = []message{
	{"data", func() string { return underLimit("data") }},
	{"lock", func() string { return underLimit("lock") }},
	{"rest", func() string { return underLimit("rest") }},
	{"c_heap", func() string { return refused(func(p *budget.Plan) { p.CHeap.Size = 64 * budget.MiB }) }},
}

// plans are the messages for a plan's values.
var plans = []message{
	{"plan", func() string {
		name := must(os.CreateTemp("", "plan")).Name()
		defer os.Remove(name)
		must(0, os.WriteFile(name, []byte(faulty), 0o600))
		_, err := budget.ReadPlan(name)
		return strings.ReplaceAll(of(err), name, "pond.json")
	}},
	{"empties", func() string {
		plan := pond()
		plan.Regions[1].Slots = 2
		plan.Regions[2].Slots, plan.Regions[2].Waiters = 0, 0
		return of(plan.Check())
	}},
}

const faulty = `{
 "name": "pond",
 "regions": [
  {"name": "level", "size": "4MB"},
  {"name": "level", "size": 0},
  {"name": "room", "sise": "4MiB", "size": "4MiB"}
 ],
 "frame": {"buffers": 9, "size": "4KiB"}
}`

// lives are the messages of lifetimes: loads, frames, leases, Close.
var lives = []message{
	{"loading", onPond(func(b *budget.Budget) string {
		return of(load(b.Region("systems"), func(s scope.Scope) error {
			return load(b.Region("level"), func(scope.Scope) error { return nil })
		}))
	})},
	{"closed", func() string {
		b := must(budget.Open(pond()))
		must(0, b.Close())
		return of(b.NextFrame())
	}},
	{"closed", func() string {
		b := must(budget.Open(pond()))
		must(0, b.Close())
		_, err := b.Quota("query").Reserve(ctx, 1)
		return of(err)
	}},
	{"left", func() string {
		b := must(budget.Open(pond()))
		b.Scratch(0, 0).Open("query")
		return of(b.Close())
	}},
	{"left", func() string {
		b := must(budget.Open(pond()))
		must(b.Slots("room").Acquire())
		must(b.Lease(ctx))
		return of(b.Close())
	}},
	{"waited", onPond(func(b *budget.Budget) string {
		must(0, load(b.Region("level"), func(scope.Scope) error { return nil }))
		reader := b.Region("level").Reader("renderer")
		reader.Pin()
		defer reader.Unpin()
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		return of(b.Region("level").Rewind(ctx))
	})},
	{"finalizer", onScratch(func(s scope.Scope) error {
		s.Own(busyFile{})
		s.Defer(func() { panic("no frog") })
		return nil
	})},
}

type busyFile struct{}

func (busyFile) Close() error { return errors.New("the file is busy") }

// misuses are the messages of a caller's bugs.
var misuses = []message{
	{"bugs", onPond(func(b *budget.Budget) string {
		query := b.Scratch(0, 0).Open("query")
		query.Open("step")
		return panicOf(func() { frogMaker.New(query) })
	})},
	{"bugs", onPond(func(b *budget.Budget) string {
		query := b.Scratch(0, 0).Open("query")
		must(0, query.Close())
		return panicOf(func() { frogMaker.New(query) })
	})},
	{"bugs", onPond(func(b *budget.Budget) string {
		var level scope.Scope
		must(0, load(b.Region("level"), func(s scope.Scope) error { level = s; return nil }))
		return panicOf(func() { frogMaker.New(level) })
	})},
	{"bugs", func() string { return panicOf(func() { scope.Scope{}.Open("query") }) }},
	{"bugs", onPond(func(b *budget.Budget) string {
		query := b.Scratch(0, 0).Open("query")
		list := container.NewList(query, frogMaker, 4)
		must(0, query.Close())
		return panicOf(func() { list.Push(frog{}) })
	})},
	{"bugs", inLevel(func(s scope.Scope) error {
		pool := frogMaker.Pool(s, 4)
		x := pool.Get()
		pool.Put(x)
		return errors.New(panicOf(func() { pool.Put(x) }))
	})},
	{"bugs", onPond(func(b *budget.Budget) string {
		room := must(b.Slots("room").Acquire())
		must(0, room.Release(ctx))
		return of(room.Release(ctx))
	})},
	{"bugs", onPond(func(b *budget.Budget) string { return panicOf(func() { b.Region("lvl") }) })},
	{"bugs", func() string {
		plan := pond()
		plan.Frame = budget.FramePlan{}
		return with(plan, func(b *budget.Budget) string { return panicOf(func() { b.Frame() }) })
	}},
	{"plain", func() string {
		//upfront:keeps the refusal is the text
		return panicOf(func() { scope.Plain[named]() })
	}},
}

type named struct {
	Name string
	Next *frog
}

type longer struct{ Tick, Score, Round uint64 }

// files are the messages of saves, recordings and graphs.
var files = []message{
	{"file", onPond(func(b *budget.Budget) string {
		_, older := begin[match](b)
		_, newer := begin[longer](b)
		var file bytes.Buffer
		must(0, older.Take(1))
		must(0, older.Write(&file, 1))
		_, err := newer.Read(&file)
		return of(err)
	})},
	{"file", inState(func(_ *match, ring *save.Ring) error {
		var file bytes.Buffer
		must(0, ring.Take(1))
		must(0, ring.Write(&file, 1))
		_, err := ring.Read(bytes.NewReader(file.Bytes()[:100]))
		return err
	})},
	{"graph", func() string {
		return fired(flow.Source{Name: "door", Nodes: []flow.Node{
			{Name: "used", Type: "event", Of: "line.used", List: then("a")},
			{Name: "a", Type: "action", Of: "open", List: then("b")},
			{Name: "b", Type: "action", Of: "open", List: then("a")},
		}})
	}},
}

func then(node string) []flow.List {
	return []flow.List{{Name: "then", Links: []flow.Link{{Node: node}}}}
}

// fired returns the error of the event of a graph.
func fired(source flow.Source) string {
	host := flow.NewHost[frog]()
	used := flow.NewEvent[struct{}](host, "line.used")
	flow.NewAction(host, "open", func(*flow.Runner, *frog, *struct{}) {})
	data, _, err := flow.Compile(source, host.Vocabulary())
	must(0, err)
	return inLevel(func(s scope.Scope) error {
		graph := must(host.Load(s, data, make([]byte, blob.ScratchSize(data))))
		graph.Instances(1)
		instance := graph.New()
		runner := host.NewRunner(s, &frog{}, 100)
		runner.Begin()
		defer runner.End()
		return used.Fire(runner, graph, instance, 0, struct{}{})
	})()
}

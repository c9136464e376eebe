//go:build memtrace

package budget_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// The sites of the random programs. Each is a function of its own, by whose name the report is read.
func bytesHere(s scope.Scope, n int)          { s.Bytes(n) }
func bytesThere(s scope.Scope, n int)         { s.Bytes(n) }
func allocsAligned(s scope.Scope, n int)      { s.Alloc(uint64(n), 16) }
func asksForTemps(s scope.Scope, n int)       { s.Temp().Bytes(n) }
func opensPool(s scope.Scope) scope.Pool[duo] { return duos.Pool(s, 4) }
func getsChunk(p scope.Pool[duo]) *duo        { return p.Get() }
func appends(s scope.Scope, list, xs []byte) []byte {
	return letters.Append(s, list, xs...)
}
func constructs(s scope.Scope, fn func(*duo) error) error {
	_, err := duos.Make(s, fn)
	return err
}

type duo struct{ a, b uint64 }

var (
	duos    = scope.Plain[duo]()
	letters = scope.Plain[byte]()
)

// thing is what a site got and what is live of it.
type thing struct {
	site           string
	bytes, objects uint64
}

// openPool is a pool in a model: the chunks are live, and it goes when the things of its scope are fewer than below.
type openPool struct {
	pool   scope.Pool[duo]
	chunks []*duo
	below  int
}

// sitesModel is a plain list of what is live, in the order in which it was made; a scope ends by cutting it.
type sitesModel struct {
	rng    *rand.Rand
	sites  map[string]*budget.Site
	things []thing
	temps  []thing
	pools  []openPool
	forget string // what a control forgets to take off
}

func (m *sitesModel) gain(site string, bytes, objects uint64) thing {
	x := m.sites[site]
	if x == nil {
		x = &budget.Site{Function: site}
		m.sites[site] = x
	}
	x.Bytes, x.Objects, x.Total, x.TotalObjects = x.Bytes+bytes, x.Objects+objects, x.Total+bytes, x.TotalObjects+objects
	x.Peak, x.PeakObjects = max(x.Peak, x.Bytes), max(x.PeakObjects, x.Objects)
	return thing{site, bytes, objects}
}

func (m *sitesModel) make(site string, bytes, objects uint64) {
	m.things = append(m.things, m.gain(site, bytes, objects))
}

func (m *sitesModel) lose(why string, list ...thing) {
	if why == m.forget {
		return
	}
	for _, x := range list {
		m.sites[x.site].Bytes -= x.bytes
		m.sites[x.site].Objects -= x.objects
	}
}

// cut is a rewind.
func (m *sitesModel) cut(why string, kept int) {
	m.lose(why, m.things[kept:]...)
	m.things = m.things[:kept]
	for n := len(m.pools); n > 0 && m.pools[n-1].below >= kept; n-- {
		for range m.pools[n-1].chunks {
			m.lose("pool", thing{"getsChunk", 16, 1})
		}
		m.pools = m.pools[:n-1]
	}
}

// play does a few things in s, and what is nested in them. check is asked after each.
func (m *sitesModel) play(s scope.Scope, depth int, constructing bool, check func() bool) bool {
	var list []byte
	newest := -1 // how many things there were when the list was the newest
	for range 3 + m.rng.IntN(12) {
		n := 1 + m.rng.IntN(300)
		switch m.rng.IntN(10) {
		case 0:
			bytesHere(s, n)
			m.make("bytesHere", uint64(n), 1)
		case 1:
			for range m.rng.IntN(5) { // a run
				bytesThere(s, 24)
				m.make("bytesThere", 24, 1)
			}
		case 2:
			allocsAligned(s, n)
			m.make("allocsAligned", uint64(n), 1)
		case 3:
			asksForTemps(s, n)
			m.temps = append(m.temps, m.gain("asksForTemps", uint64(n), 1))
		case 4:
			below := len(m.things)
			pool := opensPool(s)
			m.make("opensPool", 16, 1) // the finalizer
			m.make("opensPool", arena_c.PoolSize(16, 8, 4), 1)
			m.pools = append(m.pools, openPool{pool, nil, below})
		case 5, 6:
			m.chunk()
		case 7:
			if constructing && list == nil {
				continue
			}
			xs, grown := make([]byte, n), newest == len(m.things)
			longer := appends(s, list, xs)
			if more := len(list) + n - cap(list); more > 0 && grown {
				m.make("appends", uint64(more), 0)
			} else if more > 0 {
				m.make("appends", uint64(max(2*len(list), len(list)+n)), 1)
			} else {
				grown = newest == len(m.things)
			}
			if cap(longer) != cap(list) {
				newest = len(m.things)
			}
			list = longer
		case 8:
			if depth < 5 && !m.nest(s, depth, constructing, check) {
				return false
			}
		default:
			if depth < 5 && !m.construct(s, depth, check) {
				return false
			}
		}
		if !check() {
			return false
		}
	}
	return true
}

// chunk gets one of the newest pool, or puts one of any.
func (m *sitesModel) chunk() {
	if len(m.pools) == 0 {
		return
	}
	p := &m.pools[m.rng.IntN(len(m.pools))]
	if len(p.chunks) > 0 && m.rng.IntN(2) == 0 {
		i := m.rng.IntN(len(p.chunks))
		p.pool.Put(p.chunks[i])
		p.chunks = append(p.chunks[:i:i], p.chunks[i+1:]...)
		m.lose("put", thing{"getsChunk", 16, 1})
	} else if x := getsChunk(p.pool); x != nil {
		p.chunks = append(p.chunks, x)
		m.gain("getsChunk", 16, 1)
	}
}

func (m *sitesModel) nest(s scope.Scope, depth int, constructing bool, check func() bool) bool {
	if len(m.temps) == 0 && m.rng.IntN(2) == 0 {
		asksForTemps(s, 8) // else they may be the inner scope's, and go with it
		m.temps = append(m.temps, m.gain("asksForTemps", 8, 1))
	}
	kept, none := len(m.things), len(m.temps) == 0
	inner := s.Open("inner")
	ok := m.play(inner, depth+1, constructing, check)
	if err := inner.Close(); err != nil {
		panic(err)
	}
	m.cut("scope", kept)
	if none {
		m.lose("temps", m.temps...)
		m.temps = nil
	}
	return ok
}

func (m *sitesModel) construct(s scope.Scope, depth int, check func() bool) (ok bool) {
	kept := len(m.things)
	err := constructs(s, func(*duo) error {
		m.make("constructs", 16, 1)
		if ok = m.play(s, depth+1, true, check); m.rng.IntN(2) == 0 {
			return errLoader
		}
		return nil
	})
	if err != nil {
		m.cut("constructor", kept)
	}
	return ok
}

// differs is the first difference between the report and the model, of one arena.
func (m *sitesModel) differs(r budget.Report, arena string) string {
	seen := 0
	for _, s := range r.Sites {
		if s.Arena != arena {
			continue
		}
		seen++
		name := s.Function[strings.LastIndexByte(s.Function, '.')+1:]
		want := m.sites[name]
		if want == nil {
			return "nobody asked at " + s.Function
		}
		s.Function, s.Arena, s.File, s.Line, s.Stacks, s.Chunks = name, "", "", 0, nil, false
		if got := fmt.Sprintf("%+v", s); got != fmt.Sprintf("%+v", *want) {
			return fmt.Sprintf("%+v, but in the model\n%+v", got, *want)
		}
	}
	if seen != len(m.sites) {
		return fmt.Sprintf("%d sites, but in the model %d", seen, len(m.sites))
	}
	return ""
}

func newSitesModel(seed uint64, forget string) *sitesModel {
	return &sitesModel{rng: rand.New(rand.NewPCG(seed, 6)), sites: map[string]*budget.Site{}, forget: forget}
}

// playSites plays a program on a pad and then one in a load that may fail; the first difference ends it.
func playSites(t *testing.T, seed uint64, forget string) (differs string) {
	plan := small()
	plan.Pads.Size, plan.Regions[2].Size, plan.Limits.Pools = budget.MiB, budget.MiB, 500
	b := open(t, plan)
	defer func() { _ = b.Close() }()
	m := newSitesModel(seed, forget)
	check := func() bool {
		if differs == "" {
			differs = m.differs(b.Report(), "pad 0.0")
		}
		return differs == ""
	}
	pad := b.Pad(0, 0).Open("outer")
	m.play(pad, 0, false, check)
	require.NoError(t, pad.Close())
	m.cut("scope", 0)
	m.lose("temps", m.temps...)
	if !check() {
		return differs
	}
	m = newSitesModel(seed+1000, forget)
	_, err := budget.Load(background, b.Region("level"), func(s scope.Scope) (*struct{}, error) {
		m.play(s, 0, false, func() bool { return true })
		if differs = m.differs(b.Report(), "level"); seed%2 == 0 {
			return nil, errLoader
		}
		return nil, nil
	})
	m.lose("temps", m.temps...)
	if err != nil {
		require.ErrorIs(t, err, errLoader)
		m.cut("load", 0)
	}
	if differs == "" {
		differs = m.differs(b.Report(), "level")
	}
	require.NoError(t, errors.Join(b.Region("level").Rewind(background)))
	m.cut("load", 0)
	if differs == "" {
		differs = m.differs(b.Report(), "level")
	}
	return differs
}

// TestSitesModel plays random programs, and after each step the report has what a plain list has.
func TestSitesModel(t *testing.T) {
	for seed := range uint64(40) {
		if differs := playSites(t, seed, ""); differs != "" {
			t.Fatalf("seed %d: %s", seed, differs)
		}
	}
}

// TestSitesModelSees: a model that forgets what one kind of end takes back is found out.
func TestSitesModelSees(t *testing.T) {
	for _, forget := range []string{"scope", "constructor", "temps", "pool", "put", "load"} {
		found := false
		for seed := uint64(0); seed < 40 && !found; seed++ {
			found = playSites(t, seed, forget) != ""
		}
		assert.True(t, found, forget)
	}
}

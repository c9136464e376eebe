//go:build memtrace

package budget_test

import (
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

func often(s scope.Scope)  { shared(s) }
func seldom(s scope.Scope) { shared(s) }
func shared(s scope.Scope) { s.Bytes(100) }

// siteNamed is the site of a function in an arena.
func siteNamed(t *testing.T, r budget.Report, arena, function string) budget.Site {
	t.Helper()
	for _, s := range r.Sites {
		if s.Arena == arena && strings.HasSuffix(s.Function, "/budget_test."+function) {
			return s
		}
	}
	t.Fatalf("no site %s of %s in %v", function, arena, r.Sites)
	return budget.Site{}
}

func TestSitesNameTheLineAndTheWays(t *testing.T) {
	b := open(t, small())
	s := b.Pad(0, 0).Open("query")
	for range 300 {
		often(s)
	}
	for range 100 {
		seldom(s)
	}
	s.Close()
	s = b.Pad(0, 0).Open("query")
	often(s)
	for _, r := range []budget.Report{b.Report(), b.Snapshot()} {
		site := siteNamed(t, r, "pad 0.0", "shared")
		_, file, line, _ := runtime.Caller(0)
		assert.Equal(t, file, site.File)
		assert.InDelta(t, line, site.Line, 60)
		assert.EqualValues(t, []uint64{100, 1, 40000, 400, 40100, 401},
			[]uint64{site.Bytes, site.Objects, site.Peak, site.PeakObjects, site.Total, site.TotalObjects})
		require.Len(t, site.Stacks, 2)
		for i, way := range []struct {
			name  string
			share float64
		}{{"often", 0.75}, {"seldom", 0.25}} {
			calls := site.Stacks[i].Calls
			assert.Equal(t, fmt.Sprintf("%s %s:%d", site.Function, site.File, site.Line), calls[0])
			assert.Regexp(t, `/budget_test\.`+way.name+` \S+/sites_test\.go:\d+$`, calls[1])
			assert.Regexp(t, `/budget_test\.TestSitesNameTheLineAndTheWays \S+/sites_test\.go:\d+$`, calls[2])
			assert.InDelta(t, way.share, float64(site.Stacks[i].Total)/float64(site.Total), 0.1)
		}
		requireRoundTrip(t, r)
	}
	require.NoError(t, s.Close())
	require.NoError(t, b.Close())
	assert.Zero(t, siteNamed(t, b.Report(), "pad 0.0", "shared").Bytes)
	assert.EqualValues(t, 40100, siteNamed(t, b.Snapshot(), "pad 0.0", "shared").Total, "as they were at Close")
}

// TestSampleStacks: with 1 each request is sampled, so that the shares are exact, and the live ones too.
func TestSampleStacks(t *testing.T) {
	require.EqualValues(t, 4096, budget.SampleStacks(1))
	defer budget.SampleStacks(4096)
	require.EqualValues(t, 1, budget.SampleStacks(0))
	b := open(t, small())
	s := b.Pad(0, 0).Open("query")
	often(s)
	require.NoError(t, s.Do("inner", func(s scope.Scope) error { seldom(s); often(s); return nil }))
	often(s)
	site := siteNamed(t, b.Report(), "pad 0.0", "shared")
	var ways []string
	for _, x := range site.Stacks {
		function, _, _ := strings.Cut(x.Calls[1], " ")
		ways = append(ways, fmt.Sprint(function[strings.LastIndexByte(function, '.')+1:], " ", x.Bytes, " ", x.Total))
	}
	assert.ElementsMatch(t, []string{"often 100 100", "often 100 100", "often 0 100", "seldom 0 100"}, ways, "often has three callers")
}

// TestSitesAreTheSameEachTime: which requests are sampled depends on the program alone.
func TestSitesAreTheSameEachTime(t *testing.T) {
	var first []budget.Site
	for range 3 {
		b := open(t, small())
		mustLoad(t, b, "level", func(s scope.Scope) {
			for i := range 500 {
				s.Bytes(i)
				often(s)
			}
		})
		if r := b.Report(); first == nil {
			first = r.Sites
		} else {
			assert.Equal(t, first, r.Sites)
		}
		require.NoError(t, b.Close())
	}
}

func TestSitesInTextAndLog(t *testing.T) {
	b := open(t, small())
	s := b.Pad(0, 0).Open("query")
	often(s)
	getsChunk(opensPool(s))
	text := b.Report().String()
	here := ` sites_test\.go:\d+`
	assert.Regexp(t, `\n  pad 0\.0: budget_test\.shared`+here+` used 100 in 1, peak 100, in all 100 in 1\n`+
		`    100% by budget_test\.often`+here+`, budget_test\.TestSitesInTextAndLog`+here+`, testing\.tRunner testing\.go:\d+\n`, text)
	assert.Contains(t, text, "  pad 0.0: chunks of budget_test.getsChunk sites_model_test.go:")
	var out strings.Builder
	slog.New(slog.NewTextHandler(&out, nil)).Info("now", "budget", b.Snapshot())
	assert.Regexp(t, regexp.QuoteMeta(`budget.sites.`)+`.{0,90}budget_test\.shared \S+sites_test\.go:\d+\.bytes"=100 `, out.String())
	for _, site := range manySites { // more than are shown
		site(s)
	}
	assert.Contains(t, b.Report().String(), "\n  7 more sites\n")
}

// manySites are functions of the same line, each a site.
var manySites = [20]func(scope.Scope){
	func(s scope.Scope) { s.Bytes(1) }, func(s scope.Scope) { s.Bytes(1) }, func(s scope.Scope) { s.Bytes(1) },
	func(s scope.Scope) { s.Bytes(1) }, func(s scope.Scope) { s.Bytes(1) }, func(s scope.Scope) { s.Bytes(1) },
	func(s scope.Scope) { s.Bytes(1) }, func(s scope.Scope) { s.Bytes(1) }, func(s scope.Scope) { s.Bytes(1) },
	func(s scope.Scope) { s.Bytes(1) }, func(s scope.Scope) { s.Bytes(1) }, func(s scope.Scope) { s.Bytes(1) },
	func(s scope.Scope) { s.Bytes(1) }, func(s scope.Scope) { s.Bytes(1) }, func(s scope.Scope) { s.Bytes(1) },
	func(s scope.Scope) { s.Bytes(1) }, func(s scope.Scope) { s.Bytes(1) }, func(s scope.Scope) { s.Bytes(1) },
	func(s scope.Scope) { s.Bytes(1) }, func(s scope.Scope) { s.Bytes(1) },
}

// TestLeaksNameWhatIsInThem: the error of a scope that was left open says who asked for what it holds.
func TestLeaksNameWhatIsInThem(t *testing.T) {
	b := open(t, small())
	outer := b.Pad(0, 0).Open("outer")
	bytesHere(outer, 7)
	inner := outer.Open("inner")
	often(inner)
	often(inner)
	bytesThere(inner, 300)
	asksForTemps(inner, 64)
	text := b.Close().Error()
	at := ` \S+_test\.go:\d+\n`
	assert.Regexp(t, `\n\tscope "outer" holds:\n\t\t7 bytes in 1: \S+\.bytesHere`+at, text)
	assert.Regexp(t, `\n\tscope "inner" holds:\n\t\t300 bytes in 1: \S+\.bytesThere`+at+`\t\t200 bytes in 2: \S+\.shared`+at+
		`\t\t64 bytes in 1: \S+\.asksForTemps`+at[:len(at)-2]+`$`, text)
}

// TestSitesFromAnyGoroutine: pads are used while others read.
func TestSitesFromAnyGoroutine(t *testing.T) {
	b := open(t, small())
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 50 {
				pads, err := b.Pads.Take(background)
				if err != nil {
					t.Error(err)
					return
				}
				s := pads.Pad(0).Open("query")
				often(s)
				getsChunk(opensPool(s))
				_ = s.Close()
				_ = pads.Give()
				_ = b.Snapshot().Sites
			}
		})
	}
	all.Wait()
	var total uint64
	for _, s := range b.Snapshot().Sites {
		assert.Zero(t, s.Bytes, s)
		if strings.HasSuffix(s.Function, ".shared") {
			total += s.Total
		}
	}
	assert.EqualValues(t, 100*100, total)
}

// TestSitesThatAreLostAreCounted: more runs than there are places for.
func TestSitesThatAreLostAreCounted(t *testing.T) {
	plan := small()
	plan.Regions[2].Size = 2 * budget.MiB
	b := open(t, plan)
	before := b.Report().SitesLost
	mustLoad(t, b, "level", func(s scope.Scope) {
		for range 1 << 17 {
			s.Bytes(1)
			s.Bytes(2)
		}
		s.Bytes(1)
	})
	r := b.Report()
	lost := r.SitesLost - before
	assert.Positive(t, lost)
	assert.Less(t, lost, uint64(100), "what is open beside")
	requireRoundTrip(t, r)
	require.NoError(t, b.Region("level").Rewind(background))
	for _, s := range b.Report().Sites {
		assert.Zero(t, s.Bytes, s)
	}
	mustLoad(t, b, "level", often)
	assert.Equal(t, r.SitesLost, b.Report().SitesLost, "there are places again")
	require.NoError(t, b.Close())
}

// BenchmarkTraced is what a request costs in a memtrace build: New, and New that keeps the stack each time.
func BenchmarkTraced(b *testing.B) {
	for _, every := range []uint64{4096, 1} {
		b.Run(fmt.Sprintf("every %d", every), func(b *testing.B) {
			defer budget.SampleStacks(budget.SampleStacks(every))
			house := open(b, small())
			defer house.Close()
			s := house.Pad(0, 0).Open("s")
			for range b.N {
				if duos.TryNew(s) == nil {
					b.StopTimer()
					_ = s.Close()
					s = house.Pad(0, 0).Open("s")
					b.StartTimer()
				}
			}
			_ = s.Close()
		})
	}
}

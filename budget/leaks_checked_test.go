//go:build checked

package budget_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// The four kinds of leaks. Each begins in a function of its own, so that its name is in the error.
func opensAPadScope(b *budget.Budget) { b.Scratch(0, 0).Open("query") }
func acquiresARoom(b *budget.Budget)  { _, _ = b.Slots("room").Acquire() }
func takesScratch(b *budget.Budget)   { _, _ = b.Lease(background) }
func holdsAValue(s scope.Scope)       { s.Own(&closer{1}) }

// requireSite checks that the text has the object, and that the newest call in this file is the
// named one.
func requireSite(t *testing.T, text, what, function string) {
	t.Helper()
	_, rest, found := strings.Cut(text, "\n\t"+what+" at:\n")
	require.True(t, found, "%s in:\n%s", what, text)
	first, others, _ := strings.Cut(rest, "\n")
	assert.Regexp(t, `^\t\t\S+/budget_test\.`+regexp.QuoteMeta(function)+` \S+/leaks_checked_test\.go:\d+$`, first)
	assert.Regexp(t, `^\t\t\S+/budget_test\.Test\S+ \S+/leaks_checked_test\.go:\d+\n`, others, "who called it")
}

func TestLeaksSayWhereTheyBegan(t *testing.T) {
	plan := rooms(false)
	plan.Scratch.Workers = 2
	b := open(t, plan)
	opensAPadScope(b)
	require.NoError(t, b.NextFrame())
	require.NoError(t, b.Scratch(0, 0).Open("closed").Close())
	acquiresARoom(b)
	takesScratch(b)
	scratch := b.Scratch(0, 1).Open("a")
	holdsAValue(scratch)
	tableOf(b).Row(6).Arena.Chain = 0 // a stray write: the chain is lost
	require.NoError(t, scratch.Close())
	err := b.Close()
	require.Error(t, err)
	text := err.Error()
	requireSite(t, text, `scope "query" opened`, "opensAPadScope")
	requireSite(t, text, `slot "room 0" acquired`, "acquiresARoom")
	requireSite(t, text, `scratch 1.0 and scratch 1.1 taken`, "takesScratch")
	requireSite(t, text, `Close of *budget_test.closer given`, "holdsAValue")
	for _, inside := range []string{"/upfront/scope.", "/upfront/scope/stack.", "/upfront/budget.", "\truntime.",
		`"closed"`} {
		assert.NotContains(t, text, inside)
	}
}

func failsToClose(s scope.Scope) { s.Defer(func() { panic("boom") }) }

func TestFinalizersThatFailSayWhereTheyWereGiven(t *testing.T) {
	b := open(t, small())
	failsToClose(b.Frame())
	err := b.Close()
	require.ErrorContains(t, err, `frame 0, scope "frame": a deferred function panicked: boom`)
	requireSite(t, err.Error(), "given", "failsToClose")
}

// TestScopeOfAFrameSaysWhere: the report has the call that opened the scope which was open at
// NextFrame, not the call that opened a later scope in its place.
func TestScopeOfAFrameSaysWhere(t *testing.T) {
	b := open(t, small())
	opensAPadScope(b)
	require.NoError(t, b.NextFrame())
	for range 3 {
		b.Scratch(0, 0).Open("inner") // covers it
	}
	err := b.Close()
	require.Error(t, err)
	requireSite(t, err.Error(), `scope "query" opened`, "opensAPadScope")
	assert.Contains(t, err.Error(), "\tscope \"inner\" opened, and 2 more at:\n")
}

func TestSiteKeepsTheNewestCalls(t *testing.T) {
	b := open(t, small())
	var deep func(n int)
	deep = func(n int) {
		if n == 0 {
			opensAPadScope(b)
			return
		}
		deep(n - 1)
	}
	deep(100)
	text := b.Close().Error()
	assert.Contains(t, text, "budget_test.opensAPadScope ")
	assert.LessOrEqual(t, strings.Count(text, "\n\t\t"), 16)
	assert.GreaterOrEqual(t, strings.Count(text, "\n\t\t"), 10)
}

func TestSitesAllocateNothing(t *testing.T) {
	b := open(t, small())
	s := b.Scratch(0, 0).Open("s")
	c := &closer{1}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		inner := s.Open("inner")
		inner.Own(c).Cancel()
		_ = inner.Close()
		scratches, _ := b.Lease(background)
		_ = scratches.Release()
	}))
	require.NoError(t, s.Close())
}

// TestLeaksOfOneCall: many leaks that began in the same calls share one stack in the error, with
// their number.
func TestLeaksOfOneCall(t *testing.T) {
	b := open(t, small())
	for range 7 {
		opensAPadScope(b)
	}
	b.Scratch(0, 1).Open("another")
	text := b.Close().Error()
	requireSite(t, text, `scope "query" opened, and 6 more`, "opensAPadScope")
	assert.Contains(t, text, "scope \"another\" opened at:\n")
	assert.Equal(t, 1, strings.Count(text, "budget_test.opensAPadScope "), text)
}

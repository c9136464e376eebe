package budget

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
)

const (
	opensMost   = 16 * MiB // plans that need more are only read
	opensSystem = 200      // ranges of the process's addresses that are used up: it keeps the tables of each
)

var (
	opensBlock []byte // where plans are opened
	opensTaken int
)

// opensBytes is about what an open plan takes, on the Go heap too: that has a place for each scope, owned value and label
// of each arena.
func opensBytes(p Plan) uint64 {
	const scopeBytes, ownedBytes, labelBytes = 512, 128, 128
	p = p.resolved()
	l, err := p.layout()
	if err != nil {
		return 0 // it doesn't open
	}
	each := p.Limits.Scopes*scopeBytes + p.Limits.Owned*ownedBytes + p.Limits.Labels*labelBytes
	return l.size + p.arenaCount()*uint64(each)
}

// requireOpens says that an accepted plan opens, and holds what it says, or says why not.
func requireOpens(t *testing.T, plan Plan) {
	t.Helper()
	if opensBytes(plan) > opensMost {
		return
	}
	if plan.Pages.Prefault < Required {
		plan.Pages.Prefault = Off
	}
	if opensBlock == nil {
		opensBlock = make([]byte, opensMost+planEdge)
	}
	opensOrSays(t, plan, func(p Plan) (*Budget, error) { return OpenIn(opensBlock, p) })
	if opensTaken < opensSystem {
		opensTaken++
		opensOrSays(t, plan, Open)
	}
}

func opensOrSays(t *testing.T, plan Plan, open func(Plan) (*Budget, error)) (opened bool) {
	t.Helper()
	b, err := open(plan)
	if err != nil {
		require.Nil(t, b)
		require.True(t, utf8.ValidString(err.Error()))
		require.True(t, strings.HasPrefix(err.Error(), fmt.Sprintf("budget %q: ", plan.Name)), err.Error())
		require.NotContains(t, err.Error(), "BUG")
		return false
	}
	_, err = b.Walk()
	require.NoError(t, err)
	require.Equal(t, plan.resolved().Regions, b.Plan().Regions)
	for i, open := range b.regions {
		if i > 0 && i < len(b.regions)-1 {
			continue
		}
		r := &Region{region: open.region} // as Acquire gives a slot, but for its owner
		size := int(r.Report().Size)
		require.EqualValues(t, plan.resolved().Regions[r.level].Size, size)
		_, err = Load(context.Background(), r, func(s scope.Scope) (*byte, error) {
			bytes := s.Bytes(size)
			bytes[0], bytes[size-1] = 1, 1
			require.Nil(t, s.TryAllocUnzeroed(1, 1), "not a byte more")
			return &bytes[0], nil
		})
		require.ErrorIs(t, err, ErrFull)
	}
	_, err = b.Walk()
	require.NoError(t, err)
	require.NoError(t, b.NextFrame())
	require.NoError(t, b.Close())
	return true
}

// TestPlansOpenOrSayWhyNot has plans at the edges of what is accepted: the fuzzer begins with them too.
func TestPlansOpenOrSayWhyNot(t *testing.T) {
	for _, c := range opensSeeds {
		plan, err := ParsePlan([]byte(c.data))
		require.NoError(t, err, c.data)
		require.LessOrEqual(t, opensBytes(plan), uint64(opensMost), "else it is only read: %s", c.data)
		requireOpens(t, plan)
		assert.Equal(t, c.opens, opensOrSays(t, plan, Open), c.data)
	}
}

var opensSeeds = []struct {
	data  string
	opens bool
}{
	{`{"name":"a","regions":[{"name":"b","size":1}]}`, true},
	{`{"name":"a","scratch":{"workers":1,"each":1,"size":1}}`, true},
	{`{"name":"a","frame":{"buffers":2,"size":1}}`, true},
	{`{"name":"a","regions":[{"name":"b","size":1,"slots":7},{"name":"c","size":65537}],` +
		`"limits":{"scopes":1,"pools":1,"owned":1,"labels":1}}`, true},
	{`{"name":"a","size":"1MiB","regions":[{"name":"b","size":"rest"}],"frame":{"buffers":8,"size":1},` +
		`"scratch":{"workers":1,"size":1}}`, true},
	{`{"name":"a","regions":[{"name":"b","size":65536,"slots":30}],"limits":{"scopes":200},"pages":{"guards":"wished"}}`, true},
	{`{"name":"a","regions":[{"name":"b","size":65536}],"limits":{"scopes":9000,"pools":65535,"owned":9000}}`, true},
	{`{"name":"a","regions":[{"name":"b","size":65536}],"base":65536}`, true},
	{`{"name":"a","regions":[{"name":"b","size":65536}],"go_heap":"64TiB"}`, false},
}

package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/flow"
)

type stateRoot struct{ Instance flow.Instance }

type stateUsed struct{ HasKey bool }

var (
	stateMaker = scope.Plain[stateRoot]()
	stateHost  = flow.NewHost[struct{}]()
	_          = flow.NewEvent[stateUsed](stateHost, "line.used")
)

// TestInstancesFromOutside: a state from outside has its pool of instances checked, and their bools
// must be 0 or 1. Instances must be made before the state is complete.
func TestInstancesFromOutside(t *testing.T) {
	data, _, err := flow.Compile(flow.Source{Name: "door",
		Variables: []flow.Variable{{Name: "is open", Type: flow.Bool}, {Name: "many", Type: flow.Int}},
		Nodes: []flow.Node{{Name: "used", Type: "event", Of: "line.used",
			Out: []flow.Output{{Name: "has_key", Variable: "is open"}}}}}, stateHost.Vocabulary())
	require.NoError(t, err)
	b, err := budget.Open(budget.Plan{Name: "door", Regions: []budget.RegionPlan{
		{Name: "level", Size: 64 * budget.KiB, State: true}}})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	var g, late *flow.Graph
	var m *stateRoot
	var ring *save.Ring
	_, err = budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (_ *stateRoot, err error) {
		scratch := make([]byte, blob.ScratchSize(data))
		if g, err = stateHost.Load(s, data, scratch); err != nil {
			return nil, err
		}
		if late, err = stateHost.Load(s, data, scratch); err != nil {
			return nil, err
		}
		var state *save.State
		state, m = save.Begin(b.Region("level"), s, stateMaker)
		g.Instances(3)
		m.Instance = g.New()
		ring = save.NewRing(s, 3, state)
		late.Instances(1) // after the state
		return m, nil
	})
	require.NoError(t, err)
	require.NotNil(t, late.New())
	variable := flow.DataOf(g, m.Instance)
	for _, test := range []struct {
		at   int
		says string
	}{{8, `graph "door": variable 0 is a bool, and has 7`}, {12, ""}} {
		require.NoError(t, ring.Take(1))
		was := variable[test.at]
		variable[test.at] = 7
		require.NoError(t, ring.Take(2))
		delta, err := ring.Delta(nil, 1, 2)
		require.NoError(t, err)
		variable[test.at] = was
		if _, err = ring.Apply(delta); test.says == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, test.says)
		}
	}
}

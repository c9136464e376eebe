package lua_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/with/lua"
	"github.com/upfront-mem/upfront/arena/with/lua/internal/libc"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/clients/paired"
	"github.com/upfront-mem/upfront/tests/step"
)

// works are scripts that use memory, some milliseconds each. The first is the headline.
var works = []struct {
	name, script string
	times        int
}{
	{"tables, closures, names", `
		local seed, sum, ponds = 42, 0, {}
		for i = 1, 12000 do
			seed = (seed * 1103515245 + 12345) % 2147483648
			local frog = {name = "frog " .. seed % 5000, age = i, path = {}}
			for k = 1, seed % 12 do frog.path[k] = k * i end
			frog.jump = function(n) return #frog.path + n end
			ponds[seed % 3000 + 1] = frog
			sum = sum + frog.jump(1)
		end
		answer = sum`, 5},
	{"binary trees", `
		local function tree(d) if d == 0 then return {} end; return {tree(d - 1), tree(d - 1)} end
		local function count(t) if not t[1] then return 1 end; return 1 + count(t[1]) + count(t[2]) end
		local long, sum = tree(10), 0
		for d = 4, 10, 3 do
			for i = 1, 1 << (13 - d) do sum = sum + count(tree(d)) end
		end
		answer = sum + count(long)`, 5},
	{"strings", `
		local seed, sum, kept = 42, 0, {}
		for i = 1, 20000 do
			seed = (seed * 1103515245 + 12345) % 2147483648
			local s = ("frog"):rep(seed % 60) .. seed
			kept[seed % 1000 + 1] = s .. (kept[seed % 999 + 1] or ""):sub(1, 300)
			sum = sum + #kept[seed % 1000 + 1]
		end
		answer = sum`, 5},
	{"a state, made and closed", "", 200},
}

// TestFigures runs the same scripts in a heap of a budget and with Lua's own allocator. No block is
// live at the end, even after a full error.
func TestFigures(t *testing.T) {
	s := openScope(t, 17*budget.MiB)
	before := s.Free()
	plan := lua.Plan{Name: "frogs", Size: 16 * budget.MiB}
	for _, work := range works {
		answers := map[any]bool{}
		run := func(open func(scope.Scope, lua.Plan) (*lua.State, error)) func(n int) {
			return func(n int) {
				for range n {
					inner := s.Open("script")
					l, err := open(inner, plan)
					require.NoError(t, err)
					require.NoError(t, l.Run("work", work.script))
					answer, err := l.Get("answer")
					require.NoError(t, err)
					answers[answer] = true
					require.NoError(t, inner.Close())
				}
			}
		}
		times := work.times
		if step.Now() < step.Soak {
			times = 1
		}
		paired.Compare(t, work.name, times, run(lua.New),
			run(func(s scope.Scope, plan lua.Plan) (*lua.State, error) {
				return lua.NewBy(s, plan, libc.Allocate())
			}))
		assert.Len(t, answers, 1, "both do the same")
	}
	require.NoError(t, s.Do("script", func(s scope.Scope) error {
		l, err := lua.New(s, plan)
		require.NoError(t, err)
		require.ErrorIs(t, l.Run("grow", grow), scope.ErrFull)
		return nil
	}), "its Close says so when a block is live")
	paired.Live(t, before-s.Free())
}

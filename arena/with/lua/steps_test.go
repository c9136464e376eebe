package lua_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/with/lua"
	"github.com/upfront-mem/upfront/budget"
)

// closes runs forever, and again when its variable is closed.
const closes = `
	x = setmetatable({}, {__close = function() while true do end end})
	function f() local x <close> = x while true do end end
`

// TestSteps: a script that runs forever ends, in spite of all tricks.
func TestSteps(t *testing.T) {
	l := newState(t, 100_000)
	for name, script := range map[string]string{
		"loop":      "while true do end",
		"goto":      "::again:: goto again",
		"pcall":     "while true do pcall(function() while true do end end) end",
		"pcalls":    "local function f() while true do pcall(f) end end f()",
		"xpcall":    "xpcall(function() while true do end end, function() while true do end end)",
		"coroutine": "coroutine.wrap(function() while true do end end)()",
		"many":      "while true do pcall(coroutine.wrap(function() while true do end end)) end",
		"created":   "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
		"yields": "local f = coroutine.wrap(function() while true do coroutine.yield() end end) while " +
			"true do f() end",
		"close": "local x <close> = setmetatable({}, {__close = function() while true do end end}) " +
			"while true do end",
		"close of wrap": closes + "coroutine.wrap(f)()",
		"close of create": closes + "local co = coroutine.create(f) coroutine.resume(co) if coroutine.close " +
			"then coroutine.close(co) end while true do end",
		"close in close":      closes + "local g = f f = function() local y <close> = x g() end coroutine.wrap(f)()",
		"pcall in coroutine":  closes + "coroutine.wrap(function() while true do pcall(f) end end)()",
		"xpcall in coroutine": closes + "coroutine.wrap(function() while true do xpcall(f, f) end end)()",
		"sort in coroutine":   closes + "coroutine.wrap(function() local x <close> = x table.sort({1, 2, 3}, f) end)()",
		"for":                 closes + "for i in f, nil, nil, x do end",
		"sort":                "table.sort({1, 2, 3}, function() while true do end end)",
		"gsub":                "('frog'):gsub('.', function() while true do end end)",
		"metatable":           "local t = setmetatable({}, {__index = function() while true do end end}); return t.x",
		"handler":             "local function h() error('x') end while true do xpcall(error, h) end",
	} {
		err := l.Run(name, script)
		require.ErrorIs(t, err, lua.ErrSteps, name)
		require.ErrorContains(t, err, `lua: state "frogs": too many steps: `)
		require.ErrorContains(t, err, "raise Steps in its lua.Plan, which is 100000")
		goesOn(t, l)
	}
	assert.EqualError(t, l.Run("frogs.lua", "\nwhile true do end"),
		`lua: state "frogs": too many steps: frogs.lua:2: raise Steps in its lua.Plan, which is 100000`)
	for range 100 {
		require.NoError(t, l.Run("short", "for i = 1, 10000 do end"), "each call has all of the steps")
	}
}

// TestStepsCaught: a script that catches the end of its steps and returns still ends with ErrSteps.
func TestStepsCaught(t *testing.T) {
	l := newState(t, 1000)
	caught := "pcall(coroutine.wrap(function() while true do end end))"
	assert.ErrorIs(t, l.Run("caught", caught), lua.ErrSteps)
	goesOn(t, l)
}

func TestStepsOfCoroutines(t *testing.T) {
	l := newState(t, 100_000)
	for _, made := range []string{"coroutine.wrap(short)()", "coroutine.resume(coroutine.create(short))"} {
		require.ErrorIs(t, l.Run("lib", `
			n = 0
			local function short() `+strings.Repeat("n = n + 1 ", 30)+` end
			while true do `+made+` end`), lua.ErrSteps)
		n, err := l.Get("n")
		require.NoError(t, err)
		assert.Positive(t, n)
		assert.Less(t, n, int64(100_000/3), "each takes three steps")
	}
}

func TestNoSteps(t *testing.T) {
	l := newState(t, 0)
	require.NoError(t, l.Run("long", "for i = 1, 3000000 do end"))
	require.NoError(t, l.Run("coroutine", "for i = 1, 300 do coroutine.wrap(function() end)() end"))
}

// TestDeep: recursion ends with an error, in Lua and through C, while a script runs and while it is
// compiled.
func TestDeep(t *testing.T) {
	l, inner := openState(t, lua.Plan{Name: "frogs", Size: 128 * budget.MiB})
	for _, deep := range []struct{ script, text string }{
		{"local function f() return 1 + f() end f()", "stack overflow"},
		{"local function f(s) return (s:gsub('.', f)) end f('frog')", "C stack overflow"},
		{"local function f() coroutine.wrap(f)() end f()", "C stack overflow"},
		{"x = " + strings.Repeat("(", 1000) + "1" + strings.Repeat(")", 1000), "overflow"},
	} {
		require.ErrorContains(t, l.Run("deep", deep.script), deep.text, deep.script)
		goesOn(t, l)
	}
	require.NoError(t, inner.Close())
}

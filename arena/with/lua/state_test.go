package lua_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/with/lua"
	"github.com/upfront-mem/upfront/scope"
)

type health int32

// TestValues: a value that is passed to Lua comes back unchanged, by a call, a variable and a Go
// function.
func TestValues(t *testing.T) {
	l := newState(t, 0)
	require.NoError(t, l.Run("lib", "function echo(...) return ... end; function goes(...) return through(...) end"))
	require.NoError(t, l.Func("through", func(args []any) ([]any, error) { return args, nil }))
	long := strings.Repeat("a frog\x00", 5000)
	values := [][2]any{{nil, nil}, {true, true}, {false, false}, {"", ""}, {"frog", "frog"}, {long, long},
		{0, int64(0)}, {math.MinInt64, int64(math.MinInt64)}, {uint64(math.MaxUint64), int64(-1)},
		{int8(-3), int64(-3)}, {health(7), int64(7)}, {uint16(9), int64(9)}, {2.0, 2.0}, {float32(0.5), 0.5},
		{math.Inf(-1), math.Inf(-1)}, {"\xff\xfe", "\xff\xfe"}}
	var args, want []any
	for _, v := range values {
		args, want = append(args, v[0]), append(want, v[1])
		require.NoError(t, l.Set("x", v[0]))
		got, err := l.Get("x")
		require.NoError(t, err)
		assert.Equal(t, v[1], got)
	}
	for _, name := range []string{"echo", "goes", "through"} {
		got, err := l.Call(name, args...)
		require.NoError(t, err)
		assert.Equal(t, want, got, name)
		got, err = l.Call(name)
		require.NoError(t, err)
		assert.Empty(t, got)
	}
}

// TestRefusedValues: a value that can't cross is an error, both ways, and so is one value too many.
func TestRefusedValues(t *testing.T) {
	l := newState(t, 0)
	require.NoError(t, l.Run("lib", `
		function table_() return 1, {} end
		function function_() return add end
		function many(n) return table.unpack({}, 1, n) end
		function ask(n) return go(many(n)) end
		function ask_table() return go({}) end
		function raise(x) error(x) end
		function raise_table() error({}) end`))
	var give []any
	require.NoError(t, l.Func("go", func(args []any) ([]any, error) { return give, nil }))
	call := func(name string, args ...any) error {
		_, err := l.Call(name, args...)
		return err
	}
	assert.EqualError(t, call("table_"),
		`lua: state "frogs": value 2 is a table: only numbers, strings, booleans and nil go from Lua to Go`)
	assert.ErrorContains(t, call("function_"), "value 1 is a function: ")
	assert.EqualError(t, call("add", 1, []int{2}),
		`lua: state "frogs": value 2 is a []int: only numbers, strings, booleans and nil go from Go to Lua`)
	assert.ErrorContains(t, l.Set("x", errors.New("x")), "value 1 is a *errors.errorString: ")
	assert.EqualError(t, call("add", make([]any, 17)...), `lua: state "frogs": 17 values, of at most 16`)
	for _, n := range []int{17, 18, 100, 1000} {
		assert.ErrorContains(t, call("many", n), "values, of at most 16")
		assert.ErrorContains(t, call("ask", n), "values for a Go function, which takes at most 16")
	}
	require.NoError(t, call("many", 16))
	require.NoError(t, call("ask", 16))
	assert.ErrorContains(t, call("ask_table"), "lib:6: value 1 is a table: ")
	give = make([]any, 17)
	assert.ErrorContains(t, call("ask", 1), "lib:5: 17 values, of at most 16")
	give = []any{struct{}{}}
	assert.ErrorContains(t, call("ask", 1), "lib:5: value 1 is a struct {}: ")
	_, err := l.Get("add")
	assert.ErrorContains(t, err, "value 1 is a function: ")
	assert.EqualError(t, call("raise_table"), `lua: state "frogs": an error that is a table`)
	assert.EqualError(t, call("raise", nil), `lua: state "frogs": an error that is nil`)
	assert.EqualError(t, call("raise", 5), `lua: state "frogs": 5`)
	assert.ErrorContains(t, l.Func("no", nil), `lua: BUG: state "frogs": Func "no" of nil`)
	goesOn(t, l)
}

func TestErrors(t *testing.T) {
	l := newState(t, 0)
	for source, text := range map[string]string{
		"x = = 1":                    `lua: state "frogs": pond.lua:1: unexpected symbol near '='`,
		"\n\nerror('no frog')":       `lua: state "frogs": pond.lua:3: no frog`,
		"local x = nil; return x.y":  `lua: state "frogs": pond.lua:1: attempt to index a nil value (local 'x')`,
		"none()":                     `lua: state "frogs": pond.lua:1: attempt to call a nil value (global 'none')`,
		"setmetatable({}, {__gc=1})": `lua: state "frogs": pond.lua:1: a metatable with __gc isn't allowed here`,
		"\x1bLua":                    `lua: state "frogs": attempt to load a binary chunk (mode is 't')`,
	} {
		assert.EqualError(t, l.Run("pond.lua", source), text)
	}
	_, err := l.Call("none")
	assert.EqualError(t, err, `lua: state "frogs": attempt to call a nil value`)
	require.NoError(t, l.Run("dump", "function dump() return string.dump(add) end"))
	code, err := l.Call("dump")
	require.NoError(t, err)
	assert.ErrorContains(t, l.Run("dump", code[0].(string)), "attempt to load a binary chunk")
	require.NoError(t, l.Run("lib", "local t = setmetatable({}, {__index = {x = 1}}); assert(t.x == 1)"))
	require.NoError(t, l.Run("lib", "assert(not pcall(setmetatable))"))
	goesOn(t, l)
}

func TestLibraries(t *testing.T) {
	l := newState(t, 0)
	require.NoError(t, l.Run("lib", `
		local names = {}
		for name in pairs(_G) do names[#names + 1] = name end
		table.sort(names)
		all = table.concat(names, " ")`))
	all, err := l.Get("all")
	require.NoError(t, err)
	assert.Equal(t, "_G _VERSION add assert collectgarbage coroutine error getmetatable ipairs math next "+
		"pairs pcall rawequal rawget rawlen rawset select setmetatable string table tonumber tostring type "+
		"utf8 xpcall", all)
}

var errPond = errors.New("the pond is dry")

// TestGoErrors: the error of a Go function is an error in the script, and comes out as itself
// unless the script catches it.
func TestGoErrors(t *testing.T) {
	l := newState(t, 0)
	require.NoError(t, l.Func("drink", func([]any) ([]any, error) { return nil, errPond }))
	require.NoError(t, l.Func("panics", func([]any) ([]any, error) { panic(errPond) }))
	require.NoError(t, l.Func("panics_text", func([]any) ([]any, error) { panic("no frog") }))
	err := l.Run("lib", "\ndrink()")
	assert.ErrorIs(t, err, errPond)
	assert.EqualError(t, err, `lua: state "frogs": lib:2: the pond is dry`)
	err = l.Run("lib", "local ok, err = pcall(drink); error(err, 0)")
	assert.ErrorIs(t, err, errPond, "raised again")
	err = l.Run("lib", "coroutine.wrap(function() drink() end)()")
	assert.ErrorIs(t, err, errPond, "out of a coroutine")
	err = l.Run("lib", "local ok, err = pcall(drink); error('another', 0)")
	assert.NotErrorIs(t, err, errPond)
	require.NoError(t, l.Run("lib", "local ok, err = pcall(drink); assert(not ok and err:find('dry'))"))
	err = l.Run("lib", "panics()")
	assert.ErrorIs(t, err, errPond)
	assert.EqualError(t, err, `lua: state "frogs": lib:1: a Go function panicked: the pond is dry`)
	assert.EqualError(t, l.Run("lib", "panics_text()"),
		`lua: state "frogs": lib:1: a Go function panicked: no frog`)
	goesOn(t, l)
}

// TestFullInGo: if a Go function's scope is full, the error is that scope's, and no frame of C is
// left.
func TestFullInGo(t *testing.T) {
	l, inner := openState(t, lua.Plan{Name: "frogs", Size: size})
	numbers := scope.Plain[uint64]()
	require.NoError(t, l.Func("fill", func([]any) ([]any, error) {
		return nil, inner.Do("fill", func(s scope.Scope) error {
			numbers.Slice(s, 1<<20)
			return nil
		})
	}))
	require.NoError(t, l.Func("panics", func([]any) ([]any, error) {
		numbers.Slice(inner, 1<<20)
		return nil, nil
	}))
	for _, name := range []string{"fill", "panics"} {
		_, err := l.Call(name)
		var full *scope.FullError
		require.ErrorAs(t, err, &full)
		assert.Equal(t, "scratch.size", full.Key)
		assert.Equal(t, uint64(8<<20), full.Asked)
		goesOn(t, l)
	}
	assert.ErrorIs(t, inner.Close(), scope.ErrFull, "a scope tells what it met")
}

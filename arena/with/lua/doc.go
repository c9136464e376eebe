// Package lua keeps a Lua state in a budget: all of its memory lies in a heap of fixed size in a
// scope, and the state is closed before the scope's memory ends. A script that wants more gets Lua's
// own "not enough memory", and the state goes on. It is Debian's Lua 5.4 (liblua5.4-dev) by cgo.
//
// It puts no limit on time: Steps counts instructions of Lua, and a library function is one of them
// however long it takes, so who means harm finds one, string.rep or table.move, that takes for ever.
// Only Lua's memory is the budget's: what Go functions allocate, and the C stack of the thread that a
// script runs on, isn't. Values that cross are numbers, strings, booleans and nil, 16 at most each way,
// and no tables. Scripts aren't deterministic: the order of pairs and math.random's seed are other ones
// in each state. Its memory holds addresses, so a state can't lie in what package save takes and puts
// back.
//
//	l, err := lua.New(s, lua.Plan{Name: "frogs", Size: 256 * budget.KiB, Steps: 100_000})
//	err = l.Run("frogs.lua", `function add(a, b) return a + b end`)
//	sum, err := l.Call("add", 1, 2) // sum[0] is int64(3)
//
// # What scripts have
//
// The libraries base, table, string, math, utf8 and coroutine. Not io, os, debug and package, not
// dofile, load, loadfile, print and warn, and not coroutine.close: what a script may do beside, the
// program gives it by [State.Func]. Chunks are text; bytecode is refused. setmetatable refuses a __gc,
// which would run where nothing counts its steps.
//
// # Errors
//
// A call that fails has changed what its script changed until then, and the state goes on:
//
//   - full: errors.Is(err, scope.ErrFull), with the state's name, its size and Lua's words; also while
//     much is free, when it lies in pieces
//   - too many steps: errors.Is(err, [ErrSteps]); a script can't catch it
//   - what a Go function gave: errors.Is(err, that), behind the line that called it
//   - all else, a recursion too deep too, is Lua's own text
//
// Misuse is an error that says BUG and touches nothing: a state used after its scope closed
// (errors.Is(err, scope.ErrClosed)), by two goroutines at a time, or by a Go function that it calls.
//
// # Flow
//
// [Action] declares an action of package flow that calls a function of a script.
package lua

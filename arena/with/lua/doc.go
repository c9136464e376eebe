// Package lua puts all memory of a Lua state into a heap of fixed size in a scope. A script that
// needs more gets Lua's own "not enough memory", and the state goes on. The scope closes the state
// before its memory ends. Lua is Debian's Lua 5.4 (liblua5.4-dev), by cgo.
//
//	l, err := lua.New(s, lua.Plan{Name: "frogs", Size: 256 * budget.KiB, Steps: 100_000})
//	err = l.Run("frogs.lua", `function add(a, b) return a + b end`)
//	sum, err := l.Call("add", 1, 2) // sum[0] is int64(3)
//
// [New] makes a [State]; [State.Run] runs source text, and [State.Call] a function. [State.Func]
// gives scripts a function of Go. [Action] declares an action of package flow that calls a function
// of a script.
//
// # Limits
//
//   - Time isn't bounded. Steps counts instructions of Lua, and a library function counts as one: a
//     hostile script can make string.rep or table.move run for ever.
//   - Only Lua's memory is in the heap. The allocations of Go functions aren't, nor is the C stack
//     of the script's thread.
//   - Only numbers, strings, booleans and nil cross between Go and Lua, at most 16 each way; tables
//     don't.
//   - Scripts aren't deterministic: the order of pairs and the seed of math.random differ between
//     states.
//   - The memory holds addresses, so a state can't be part of a level's state that package save
//     saves or restores.
//
// # Functions of scripts
//
// The libraries base, table, string, math, utf8 and coroutine. Scripts don't have io, os, debug and
// package, nor dofile, load, loadfile, print, warn and coroutine.close. The program can give them
// more with [State.Func]. A chunk is source text; bytecode is refused. setmetatable refuses __gc,
// because finalizers would run without counted steps.
//
// # Errors
//
// After an error the state goes on. The failed call's changes stay.
//
//   - full: errors.Is(err, scope.ErrFull), with the state's name, its size and Lua's text. A
//     fragmented heap may be full although much of it is free.
//   - too many steps: errors.Is(err, [ErrSteps]). A script can't catch it.
//   - the error of a Go function: errors.Is(err, that error). The text begins with the script line
//     that called it.
//   - all others, such as a recursion that is too deep, are Lua's own text.
//
// Misuse is an error with the word BUG, and changes nothing. A state may not be used after its
// scope has closed (errors.Is(err, scope.ErrClosed)), by two goroutines at a time, or by a Go
// function that it calls.
package lua

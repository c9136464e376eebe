// Package lua puts all memory of a Lua state into a heap of fixed size in a scope. A script that
// needs more memory gets Lua's own error "not enough memory", and the state can be used further.
// The scope closes the state before it frees the heap. Lua is Debian's Lua 5.4 (liblua5.4-dev), by
// cgo.
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
//   - Time isn't bounded. Steps counts instructions of Lua, and a library function counts as one
//     instruction, so a hostile script can make string.rep or table.move run almost forever.
//   - Only Lua's memory is in the heap. Allocations of Go functions, and the C stack of the
//     script's thread, are outside of it.
//   - Only numbers, strings, booleans and nil pass between Go and Lua, at most 16 each way, and no
//     tables.
//   - Scripts aren't deterministic: the order of pairs and the seed of math.random differ between
//     states.
//   - The memory holds addresses, so package save can't save or restore a Lua state.
//
// # Functions of scripts
//
// Scripts can use the libraries base, table, string, math, utf8 and coroutine, except the functions
// dofile, load, loadfile, print, warn and coroutine.close. They can't use io, os, debug and
// package. The program can add functions with [State.Func]. A chunk is source text; bytecode is
// refused. setmetatable refuses __gc, because the steps of finalizers wouldn't be counted.
//
// # Errors
//
// After an error the state can be used further. The failed call's changes stay.
//
//   - The heap is full: errors.Is(err, scope.ErrFull), with the state's name, its size and Lua's
//     text. A fragmented heap may be full although much of it is free.
//   - The script took too many steps: errors.Is(err, [ErrSteps]). A script can't catch this error.
//   - A Go function returned an error: errors.Is(err, that error). The text begins with the script
//     line that called the function, if one did.
//   - Most others, such as a recursion that is too deep, have Lua's own text.
//
// Misuse returns an error with the word BUG (Stats returns zeros), and changes nothing. It is
// misuse to use a state after its scope has closed (errors.Is(err, scope.ErrClosed)), from two
// goroutines at a time, or from a Go function that the state calls.
package lua

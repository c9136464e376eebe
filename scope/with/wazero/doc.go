// Package wazero gives the modules of [wazero], a WebAssembly runtime, their memory from a budget:
// each has a bound, and all end with a scope. It is a module of its own, and imported as with:
//
//	import (
//		"github.com/tetratelabs/wazero"
//		with "github.com/upfront-mem/upfront/scope/with/wazero"
//	)
//
//	guests := with.NewGuests(s, runtime, with.Memory{From: shared, Most: 4 << 20})
//	mod, err := guests.Instantiate(ctx, compiled, wazero.NewModuleConfig())
//
// Only linear memory is the budget's. Compiled code, tables, globals, the stacks of calls and what
// wazero notes of an instance stay where wazero puts them: some 2 KB of the Go heap an instance, 11
// more for each function that is looked up. It puts no limit on time: a context that ends does,
// under a runtime with [wazero.RuntimeConfig.WithCloseOnContextDone]. A scope whose own memory the
// guests have (a From that is nil) takes it when it closes, whoever is inside: end calls on other
// goroutines first.
//
// # Memory
//
// An instance gets all that its memory may grow to when it is made, at one address for good; so a
// shared memory (of the threads proposal) is no special case. What the instance sees begins as
// zeros: its first pages are cleared when it is made, others when they are grown to, and what it
// never asks for isn't touched. Growth beyond the bound is -1 to the guest, as WebAssembly says.
//
// # The end
//
// wazero itself runs a function of a closed instance when it is called, on the memory that it had.
// Here the instance has lost its memory before that goes back. So has who imports it. A call gets
// wazero's own error: that the module is closed or, where the guest touches memory, that the access
// is out of bounds. A call that is at work keeps the memory until it comes back, if it is one of
// [Module.ExportedFunction]; who imports the memory, and is inside, doesn't. What api.Memory.Read
// gave is the memory itself: it may not be kept.
//
// A module whose start section fails, or whose name is taken, gives its memory back to From too. wazero
// hands its instance to nobody, so it can't be told that the memory is gone; it is out of reach,
// unless it put functions into a table that it imports. Don't export a table to guests that you
// don't trust.
//
// [wazero]: https://wazero.io
package wazero

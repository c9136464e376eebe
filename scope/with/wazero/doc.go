// Package wazero takes the memory of [wazero] modules, WebAssembly guests, from a budget: each
// guest is bounded, and ends with a scope. The package is a module of its own; import it as with:
//
//	import (
//		"github.com/tetratelabs/wazero"
//		with "github.com/upfront-mem/upfront/scope/with/wazero"
//	)
//
//	guests := with.NewGuests(s, runtime, with.Memory{From: shared, Most: 4 << 20})
//	mod, err := guests.Instantiate(ctx, compiled, wazero.NewModuleConfig())
//
// Its limits:
//
//   - Only linear memory is in the budget. Compiled code, tables, globals, the stacks of calls and
//     wazero's own records stay elsewhere: 2 to 8 KB of the Go heap for an instance, and 12 KB for
//     each function that is looked up.
//   - It doesn't limit time. A context does, with [wazero.RuntimeConfig.WithCloseOnContextDone].
//   - With a nil From the guests' memory is in the scope, whose Close frees it even while calls
//     run: end calls on other goroutines first.
//
// # Memory
//
// An instance gets memory of the size of its bound when it is made, and the memory never moves. A
// shared memory (of the threads proposal) is therefore no special case. The guest sees zeros: its
// first pages are cleared when it is made, others when it grows. Pages that the guest never grows
// to aren't touched. Growth beyond the bound returns -1 to the guest, as WebAssembly specifies.
//
// # The end
//
// wazero itself lets a function of a closed instance run on the instance's old memory. Here the
// memory is detached from the instance, and from modules that import it, before it is freed. A
// later call returns wazero's own error: that the module is closed or, if the guest uses memory,
// that the access is out of bounds. A running call of [Module.ExportedFunction] keeps the memory
// until it returns; a call of a module that imports the memory doesn't. api.Memory.Read returns the
// memory itself, so don't keep its result.
//
// If a module's start section fails, or its name is in use, its memory is also freed. wazero
// doesn't return such an instance, so this package can't detach its memory. The program can't call
// the instance, unless its start put functions into an imported table: don't export a table to
// guests that you don't trust.
//
// [wazero]: https://wazero.io
package wazero

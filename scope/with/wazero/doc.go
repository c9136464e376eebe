// Package wazero takes the memory of [wazero] modules, WebAssembly guests, from a budget: each
// guest has a bound, and all end with a scope. The package is a module of its own; import it as
// with:
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
//   - Only linear memory is the budget's. Compiled code, tables, globals, the stacks of calls and
//     wazero's own records stay elsewhere: some 2 KB of the Go heap an instance, and 11 KB for each
//     function that is looked up.
//   - It doesn't limit time. A context does, with [wazero.RuntimeConfig.WithCloseOnContextDone].
//   - With a nil From the guests' memory is in the scope, whose Close frees it even while calls
//     run: end calls on other goroutines first.
//
// # Memory
//
// An instance gets its whole bound when it is made, at one address for good. A shared memory (of
// the threads proposal) is therefore no special case. The guest sees zeros: its first pages are
// cleared when it is made, others when it grows. Pages that the guest never grows to aren't
// touched. Growth beyond the bound returns -1 to the guest, as WebAssembly specifies.
//
// # The end
//
// wazero itself lets a function of a closed instance run on the instance's old memory. Here the
// instance, and modules that import its memory, lose the memory before it is freed. A call gets
// wazero's own error: the module is closed or, where the guest touches memory, the access is out of
// bounds. A running call of [Module.ExportedFunction] keeps the memory until it returns; a call of
// a module that imports the memory doesn't. api.Memory.Read returns the memory itself: don't keep
// it.
//
// A module whose start section fails, or whose name is taken, returns its memory to From too.
// wazero doesn't hand out such an instance, so this package can't empty it. The program can't reach
// the instance, unless its start put functions into an imported table: don't export a table to
// guests that you don't trust.
//
// [wazero]: https://wazero.io
package wazero

// Package wazero takes the memory of WebAssembly guests (modules of [wazero]) from a budget. Each
// guest's memory is bounded, and each guest ends with a scope or before. The package is a module of
// its own; import it as with:
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
//     wazero's own records stay elsewhere: about 2 KB of the Go heap or more for an instance, and
//     more for each function that is looked up.
//   - The package doesn't limit time. A context limits time, with
//     [wazero.RuntimeConfig.WithCloseOnContextDone].
//   - With a nil From the guests' memory is in the scope. The scope's Close frees the memory even
//     while calls run, so end calls on other goroutines first.
//
// # Memory
//
// When an instance is made, its own memory gets a block of the size of the bound. The block never
// moves. So a shared memory (of the threads proposal) is no special case. New pages are zeros: the
// first pages are cleared when the instance is made, and others when the guest grows. Pages that
// the guest never grows to aren't cleared. Growth beyond the bound returns -1 to the guest, as
// WebAssembly specifies.
//
// # The end
//
// wazero itself lets a function of a closed instance run on the instance's old memory. This package
// detaches the memory from the instance, and from modules that import the memory, before it frees
// the memory. A later call returns wazero's own error: that the module is closed or, if the guest
// uses memory, that the access is out of bounds. A running call of [Module.ExportedFunction] keeps
// memory from [Memory.From] until the call returns. A call of a module that imports the memory
// doesn't keep it. api.Memory.Read returns the memory itself, so don't keep the result.
//
// If a module's start section fails, or the module's name is in use, memory from [Memory.From] is
// also freed. wazero doesn't return such an instance, so this package can't detach the memory. The
// program can call the instance only if the module put functions into an imported table. So don't
// export a table to guests that you don't trust.
//
// [wazero]: https://wazero.io
package wazero

package wazero_test

import (
	"context"
	_ "embed"
	"fmt"
	"log"

	"github.com/tetratelabs/wazero"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	with "github.com/upfront-mem/upfront/scope/with/wazero"
)

// (memory 1) (func (export "grow") (param i32) (result i32) local.get 0 memory.grow)
//
//go:embed testdata/grow.wasm
var wasm []byte

func Example() {
	ctx := context.Background()
	b, err := budget.Open(budget.Plan{Name: "server",
		Scratch: budget.ScratchPlan{Workers: 1, Each: 1, Size: 2 * budget.MiB}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	runtime := wazero.NewRuntime(ctx)
	defer runtime.Close(ctx)
	compiled, err := runtime.CompileModule(ctx, wasm)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		fmt.Println(serve(ctx, b.Scratch(0, 0), runtime, compiled))
	}
	// Output:
	// [1] 720896
	// <nil>
	// [1] 720896
	// <nil>
}

// serve runs a guest of its own for a request, with 1 MiB at most.
func serve(ctx context.Context, scratch scope.Scratch, r wazero.Runtime,
	compiled wazero.CompiledModule) error {
	return scratch.Do("request", func(s scope.Scope) error {
		guests := with.NewGuests(s, r, with.Memory{Most: 1 << 20})
		mod, err := guests.Instantiate(ctx, compiled, wazero.NewModuleConfig())
		if err != nil {
			return err
		}
		had, err := mod.ExportedFunction("grow").Call(ctx, 10)
		fmt.Println(had, mod.Memory().Size())
		return err // the guest ends here, and its memory is free again
	})
}

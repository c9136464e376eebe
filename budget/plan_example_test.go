package budget_test

import (
	"fmt"

	"github.com/upfront-mem/upfront/budget"
)

// A plan for a server of sixteen rooms, drawn: where each part lies, and the key of the plan that says so.
func ExamplePlan_String() {
	plan, err := budget.ParsePlan([]byte(`{
		"name": "server",
		"size": "96MiB",
		"regions": [
			{"name": "systems", "size": "12MiB"},
			{"name": "room", "size": "2MiB", "slots": 16, "note": "largest room + 10 %"},
			{"name": "cache", "size": "rest"}
		],
		"frame": {"buffers": 2, "size": "1MiB"},
		"scratch": {"workers": 4, "size": "512KiB"},
		"pages": {"prefault": "required", "lock": "wished"},
		"go_heap": "32MiB"
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan)
	// Output:
	// plan server: 96 MiB
	//   systems  12 MiB  [####............................]  regions[0]
	//   room     32 MiB  [....###########.................]  regions[1]  16 slots of 2 MiB  largest room + 10 %
	//   cache    46 MiB  [...............###############..]  regions[2]  the rest
	//   frame     2 MiB  [..............................#.]  2 buffers of 1 MiB
	//   scratch   4 MiB  [...............................#]  4 workers x 2 arenas of 512 KiB
	//   Go heap  32 MiB  beside it
	//   limits of each arena: 64 scopes, 64 pools, 256 owned values, 32 labels
	//   pages: prefault required, lock wished, huge off, guards off, base off
}

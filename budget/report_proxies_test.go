package budget_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
)

// Two libraries share a heap of the level. The report has what each of them holds.
func ExampleReport_proxies() {
	b, err := budget.Open(budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	heap, err := arena.NewHeap(arena.NewBlock(8192, 64))
	if err != nil {
		panic(err)
	}
	sound, physics := arena.NewProxy("sound", heap), arena.NewProxy("physics", heap)
	sound.Alloc(96, 16)
	physics.Alloc(1<<20, 16)

	r := b.Report()
	r.Proxies = append(r.Proxies, sound.Stats(), physics.Stats())
	for line := range strings.Lines(r.String()) {
		if strings.HasPrefix(line, "  proxy") {
			fmt.Print(line)
		}
	}
	text, err := json.Marshal(r)
	fmt.Println(strings.Contains(string(text), `"proxies":[{"name":"sound","live":1,"asked":96,"peak":96,"total":1,"failed":0},{"name":"physics","live":0,"asked":0,"peak":0,"total":0,"failed":1}]`), err)
	// Output:
	//   proxy "sound": 1 live, of 96 bytes, peak 96; gave 1, refused 0
	//   proxy "physics": 0 live, of 0 bytes, peak 0; gave 0, refused 1
	// true <nil>
}

package timeline_test

import (
	"fmt"
	"log"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/timeline"
)

// A timeline has the peak of each arena in each sample, for a picture or a file.
func Example() {
	b, err := budget.Open(budget.Plan{Name: "game", Frame: budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	use := timeline.Start(b, 16)
	for tick := range 4 {
		b.Frame().Bytes(1000 * (tick + 1))
		if err := b.NextFrame(); err != nil {
			log.Fatal(err)
		}
		use.Sample()
	}
	for _, line := range use.Read().Arenas {
		fmt.Println(line.Name, line.Most)
	}
	// Output:
	// frame 0 [1000 1000 3000 3000]
	// frame 1 [0 2000 2000 4000]
}

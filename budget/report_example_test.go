//go:build !checked

package budget_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

func playedCabin() *budget.Budget {
	b, err := budget.Open(budget.Plan{Name: "cabin",
		Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}})
	if err != nil {
		panic(err)
	}
	_, err = budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*struct{}, error) {
		s.Bytes(4000)
		return nil, s.Do("scratch", func(s scope.Scope) error { s.Bytes(9000); return nil })
	})
	if err != nil {
		panic(err)
	}
	return b
}

// A program writes a report as JSON and reads it again. Suggest makes a plan from many such
// reports.
func ExampleReport_json() {
	b := playedCabin()
	defer b.Close()
	text, err := json.Marshal(b.Report())
	if err != nil {
		panic(err)
	}
	var recorded budget.Report
	if err := json.Unmarshal(text, &recorded); err != nil {
		panic(err)
	}
	level, err := json.MarshalIndent(recorded.Arenas[0], "", "  ")
	fmt.Println(string(level), err)
	fmt.Println(recorded.Plan.Regions[0].Size, "bytes were planned")
	// Output:
	// {
	//   "name": "level",
	//   "part": "level",
	//   "index": 0,
	//   "kind": "region",
	//   "size": 65536,
	//   "used": 4000,
	//   "peak": 13000,
	//   "load_peak": 13000,
	//   "free": 61536,
	//   "finalizers": 0,
	//   "pool_cap": 0,
	//   "pool_peak": 0,
	//   "most_open": {
	//     "scopes": 2,
	//     "pools": 0,
	//     "owned": 0,
	//     "labels": 0
	//   },
	//   "scopes": [
	//     {
	//       "name": "level",
	//       "bytes": 4000,
	//       "peak": 4000,
	//       "allocated": 4000
	//     },
	//     {
	//       "name": "scratch",
	//       "bytes": 0,
	//       "peak": 9000,
	//       "allocated": 9000
	//     }
	//   ]
	// } <nil>
	// 65536 bytes were planned
}

// Any goroutine may log the result of Published, or a part of the result. Sizes are numbers of
// bytes, and each arena is a group.
func ExampleArenaReport_LogValue() {
	b := playedCabin()
	defer b.Close()
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, nil))
	log.Info("a minute", "level", b.Published().Arenas[0])
	_, line, _ := strings.Cut(out.String(), " ") // without the time
	fmt.Println(strings.ReplaceAll(line, " level.", "\nlevel."))
	// Output:
	// level=INFO msg="a minute"
	// level.size=65536
	// level.used=4000
	// level.peak=13000
	// level.load_peak=13000
	// level.free=61536
	// level.finalizers=0
	// level.pool_cap=0
	// level.pool_peak=0
	// level.most_open.scopes=2
	// level.most_open.pools=0
	// level.most_open.owned=0
	// level.most_open.labels=0
	// level.scopes.level.bytes=4000
	// level.scopes.level.peak=4000
	// level.scopes.level.allocated=4000
	// level.scopes.scratch.bytes=0
	// level.scopes.scratch.peak=9000
	// level.scopes.scratch.allocated=9000
}

package record_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/scope"
)

// loadLevel fills the level with a lily for each frog.
func loadLevel(level budget.Region, frogs int) error {
	_, err := budget.Load(context.Background(), level, func(s scope.Scope) (*struct{}, error) {
		s.Bytes(400 * frogs)
		return nil, nil
	})
	return err
}

// Two levels are played and recorded. The recording is then replayed in a plan that is too small
// for the second.
func ExampleReplay() {
	plan := budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}}
	b, err := budget.Open(plan)
	if err != nil {
		panic(err)
	}
	var trace bytes.Buffer // usually a file
	r, err := record.Start(b, &trace)
	if err != nil {
		panic(err)
	}
	for frogs := range 2 {
		r.Mark(fmt.Sprintf("level %d", frogs+1))
		if err := loadLevel(b.Region("level"), 50+50*frogs); err != nil {
			panic(err)
		}
	}
	if err := errors.Join(b.Close(), r.Close()); err != nil {
		panic(err)
	}

	report, played, err := record.Replay(plan, bytes.NewReader(trace.Bytes()))
	fmt.Println(report.Arenas[0].Peak, "bytes in", played.Marks, "levels:", err)

	plan.Regions[0].Size = 30 * budget.KiB
	_, _, err = record.Replay(plan, bytes.NewReader(trace.Bytes()))
	_, damaged := record.Plan(bytes.NewReader(trace.Bytes()[1:]))
	fmt.Println(errors.Is(damaged, record.ErrMalformed))
	var full *scope.FullError
	if e := (*record.Error)(nil); errors.As(err, &e) && errors.As(err, &full) {
		fmt.Printf("after %q, in %q: raise %s to %d\n", e.Mark, e.Scopes, full.Key, full.Need)
	}
	// Output:
	// 40000 bytes in 2 levels: <nil>
	// true
	// after "level 2", in ["level"]: raise regions[0].size to 40000
}

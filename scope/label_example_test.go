package scope_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// loadStudio books the bytes that each subsystem takes of the level. A real one would fill them.
func loadStudio(level budget.Region, textures int) error {
	_, err := budget.Load(context.Background(), level, func(s scope.Scope) (*struct{}, error) {
		err := scope.Label(s, "sound", func() error {
			s.Bytes(20 * budget.KiB)
			return nil
		})
		if err != nil {
			return nil, err
		}
		return nil, scope.Label(s, "graphics", func() error {
			for range textures {
				s.Bytes(16 * budget.KiB)
			}
			return nil
		})
	})
	return err
}

// Reports name each label, and the error of a full level names the largest.
func ExampleLabel() {
	b, err := budget.Open(budget.Plan{Name: "studio",
		Regions: []budget.RegionPlan{{Name: "level", Size: 128 * budget.KiB}}})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	level := b.Region("level")

	fmt.Println(loadStudio(level, 3))
	for _, label := range level.Report().Labels {
		fmt.Println(label.Name, label.Bytes, "bytes")
	}

	err = loadStudio(level, 9)
	fmt.Println(strings.ReplaceAll(err.Error(), "; ", "\n  "))
	// Output:
	// <nil>
	// sound 20480 bytes
	// graphics 49152 bytes
	// budget "studio": region level is full: scope "level" asked for 16384 bytes, 12208 of 131072 are free
	//   held by "graphics" (98304 bytes), "sound" (20480 bytes), "level" (80 bytes)
	//   raise regions[0].size in the plan to 135248 or more
}

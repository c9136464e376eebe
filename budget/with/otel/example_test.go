package otel_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/upfront-mem/upfront/budget"
	with "github.com/upfront-mem/upfront/budget/with/otel"
)

// export exports the metrics of a budget every minute, and once more when stop is called.
func export(b *budget.Budget, exporter sdk.Exporter) (stop func(context.Context) error, err error) {
	provider := sdk.NewMeterProvider(sdk.WithReader(sdk.NewPeriodicReader(exporter)))
	if _, err := with.Register(b, provider); err != nil {
		return nil, err
	}
	return provider.Shutdown, nil
}

func Example() {
	b, err := budget.Open(budget.Plan{Name: "pond",
		Regions: []budget.RegionPlan{{Name: "match", Size: 2 * budget.MiB, Slots: 16}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	// The example prints two metrics. Without the encoder, this exporter prints all as JSON.
	two := only{"upfront.region.arena_size", "upfront.region.size"}
	exporter, err := stdoutmetric.New(stdoutmetric.WithEncoder(two))
	if err != nil {
		fmt.Println(err)
		return
	}
	stop, err := export(b, exporter)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(stop(context.Background()))
	// Output:
	// upfront.region.arena_size{upfront.budget.name=pond,upfront.region.name=match} 2097152 By
	// upfront.region.size{upfront.budget.name=pond,upfront.region.name=match} 33554432 By
	// <nil>
}

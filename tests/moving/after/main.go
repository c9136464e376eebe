// Command after keeps the last samples of a fleet of machines in a budget.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/moving/fleet"
)

func main() {
	machines := flag.Int("machines", 100, "the number of machines in the fleet")
	series := flag.Int("series", 300, "the most series at once")
	plan := flag.String("plan", "after/plan.json", "the `file` with the plan")
	report := flag.String("report", os.DevNull, "the `file` for a report of the budget")
	flag.Parse()
	log.SetFlags(0)
	if err := run(*machines, *series, *plan, *report); err != nil {
		log.Fatal(err)
	}
}

func run(machines, series int, planFile, report string) error {
	plan, err := budget.ReadPlan(planFile)
	if err != nil {
		return err
	}
	b, err := budget.Open(plan) // takes all memory of the plan
	if err != nil {
		return err
	}
	h, err := load(b, series)
	if err == nil {
		day(h, machines, os.Stdout)
		text, _ := json.Marshal(b.Report())
		err = os.WriteFile(report, text, 0o644)
	}
	return errors.Join(err, b.Close())
}

// load loads a History of at most n series into the region.
func load(b *budget.Budget, n int) (*History, error) {
	loaded, err := budget.Load(context.Background(), b.Region("history"), func(s scope.Scope) (*History, error) {
		return NewHistory(s, n), nil
	})
	return loaded.Get(), err
}

// day keeps the samples of a day, and prints a few series.
func day(h *History, machines int, w io.Writer) {
	for _, series := range fleet.Day(machines, h.Add, h.Drop) {
		fmt.Fprintln(w, h.Line(series))
	}
	if h.Refused > 0 {
		log.Print("samples refused: ", h.Refused)
	}
}

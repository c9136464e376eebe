// Command suggest makes a plan of what budgets needed, from reports that were recorded as JSON (frogpond's flag -report,
// or json.Marshal of a budget.Report), with some percent to spare:
//
//	suggest -headroom 10 -name handheld freedoom.json long.json > plan.json
//
// The regions' notes name the file that the peak came from: "freedoom". It prints the plan, or what is wrong with a report
// and exits 1.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/upfront-mem/upfront/budget"
)

func main() {
	headroom := flag.Int("headroom", 0, "make each size and limit so many `percent` larger")
	name := flag.String("name", "", "the plan's name (default: that of the first report)")
	flag.Parse()
	if err := suggest(os.Stdout, *headroom, *name, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "suggest:", err)
		os.Exit(1)
	}
}

func suggest(out io.Writer, headroom int, name string, files []string) error {
	if headroom < 0 {
		return fmt.Errorf("-headroom %d: must not be negative", headroom)
	}
	var reports []budget.Report
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var report budget.Report
		if err := json.Unmarshal(text, &report); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		report.Name = strings.TrimSuffix(filepath.Base(file), ".json")
		reports = append(reports, report)
	}
	plan, err := budget.Suggest(reports...)
	if err != nil {
		return err
	}
	if plan = plan.Headroom(headroom); name != "" {
		plan.Name = name
	}
	if err := plan.Check(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(plan, "", "  ")
	if err == nil {
		_, err = out.Write(append(text, '\n'))
	}
	return err
}

// Command before keeps the last samples of a fleet of machines on the Go heap.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/upfront-mem/upfront/tests/moving/fleet"
)

func main() {
	machines := flag.Int("machines", 100, "the number of machines in the fleet")
	flag.Parse()
	day(NewHistory(), *machines, os.Stdout)
}

// day keeps the samples of a day, and prints a few series.
func day(h *History, machines int, w io.Writer) {
	for _, series := range fleet.Day(machines, h.Add, h.Drop) {
		fmt.Fprintln(w, h.Line(series))
	}
}

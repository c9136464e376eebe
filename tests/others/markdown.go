package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/upfront-mem/upfront/tests/others/row"
)

var columns = []string{"task", "program", "resident", "outside", "garbage", "collections", "CPU time",
	"figures of the task", "at the bound"}

// The columns of numbers, and the last, whose texts may be long.
const firstNumber, lastNumber, last = 2, 6, 8

// inCell changes a text, such as an error, to one that a cell can have.
var inCell = strings.NewReplacer("|", "\\|", "\n", "; ")

// markdown returns the table. Its cells have the width of their column, for a terminal.
func markdown(rows []row.Row) string {
	lines := [][]string{columns, make([]string, len(columns))}
	for _, r := range rows {
		var figures []string
		for _, f := range r.More {
			figures = append(figures, f.Name+" "+value(f))
		}
		lines = append(lines, []string{r.Task, r.Name, size(float64(r.Resident)), size(float64(r.Outside)),
			size(float64(r.Garbage)), fmt.Sprint(r.Collections), duration(r.Time), strings.Join(figures, ", "),
			inCell.Replace(r.Bound)})
	}
	var b strings.Builder
	for i, line := range lines {
		for column, cell := range line {
			width := 3
			for _, other := range lines {
				if column != last {
					width = max(width, utf8.RuneCountInString(other[column]))
				}
			}
			space := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(cell)))
			isNumber := column >= firstNumber && column <= lastNumber
			switch {
			case i == 1 && isNumber:
				cell = strings.Repeat("-", width-1) + ":"
			case i == 1:
				cell = strings.Repeat("-", width)
			case isNumber:
				cell = space + cell
			case column != last:
				cell += space
			}
			b.WriteString("| " + cell + " ")
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// value returns a figure with its unit, and bytes and seconds in a unit for reading.
func value(f row.Figure) string {
	switch f.Unit {
	case "bytes", "B":
		return size(f.Value)
	case "s":
		return duration(time.Duration(f.Value * float64(time.Second)))
	}
	return strings.TrimSpace(number(f.Value) + " " + f.Unit)
}

// number returns a number with three digits or, if it is larger, without a fraction.
func number(v float64) string {
	if v == math.Trunc(v) || math.Abs(v) >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// size returns a number of bytes in the unit that leaves the fewest digits.
func size(v float64) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	for len(units) > 1 && v >= 1024 {
		v, units = v/1024, units[1:]
	}
	return number(v) + " " + units[0]
}

// duration returns a duration in a unit that it has at least once.
func duration(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		if d >= u.unit {
			return number(float64(d)/float64(u.unit)) + " " + u.name
		}
	}
	return number(float64(d)) + " ns"
}

// Marks on a page enclose its table.
const begin, end = "<!-- make others -->\n", "<!-- end -->\n"

// renew writes the table into a page.
func renew(name, table string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	head, rest, begins := strings.Cut(string(text), begin)
	_, tail, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return fmt.Errorf("%s has no table between %q and %q", name, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return os.WriteFile(name, []byte(head+begin+table+end+tail), 0o644)
}

// machine returns the date, the processor and the version of Go.
func machine() string {
	processor := runtime.GOARCH
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			processor = strings.TrimSpace(value)
		}
	}
	return fmt.Sprintf("%s, %s, %d cores; %s.", time.Now().Format(time.DateOnly), processor, runtime.NumCPU(),
		strings.Replace(runtime.Version(), "go", "Go ", 1))
}

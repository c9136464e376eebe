// Command others runs programs that use other people's libraries, in a budget and on the Go heap,
// and prints one table. make others runs the command.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/upfront-mem/upfront/tests/others/fight"
	"github.com/upfront-mem/upfront/tests/others/guests"
	"github.com/upfront-mem/upfront/tests/others/index"
	"github.com/upfront-mem/upfront/tests/others/queries"
	"github.com/upfront-mem/upfront/tests/others/row"
	"github.com/upfront-mem/upfront/tests/others/sqlite"
	"github.com/upfront-mem/upfront/tests/others/trees"
)

// programs are all programs, in the order of the table.
var programs = slices.Concat(
	sqlite.Programs(),
	index.Programs(),
	fight.Programs(),
	guests.Programs(),
	trees.Programs(),
	queries.Programs(),
)

func main() {
	short := flag.Bool("short", false, "do a small part of each task")
	readme := flag.String("readme", "", "renew the table of this page, a `file`")
	child := flag.Int("child", -1, "run one program, and print its row as JSON")
	flag.Parse()
	if err := run(*short, *readme, *child); err != nil {
		fmt.Fprintln(os.Stderr, "others:", err)
		os.Exit(1)
	}
}

func run(short bool, readme string, child int) error {
	if child >= 0 {
		return inside(programs[child], short)
	}
	if short && readme != "" {
		return errors.New("-readme: a page has the figures of whole tasks: leave out -short")
	}
	rows, err := table(short)
	if err != nil {
		return err
	}
	text := markdown(rows)
	fmt.Print(text)
	if readme == "" {
		return nil
	}
	return renew(readme, machine()+"\n\n"+text)
}

// inside runs one program in this process.
func inside(p row.Program, short bool) error {
	m := &row.Meter{Row: row.Row{Task: p.Task, Name: p.Name}}
	if err := p.Run(context.Background(), m, short); err != nil {
		return fmt.Errorf("%s, %s: %w", p.Task, p.Name, err)
	}
	return json.NewEncoder(os.Stdout).Encode(m.Row)
}

// table runs each program in a process of its own.
func table(short bool) (rows []row.Row, err error) {
	for i := range programs {
		r, err := runChild(i, short)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", programs[i].Task, programs[i].Name, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// runChild runs a program in a process, and returns its row.
func runChild(i int, short bool) (r row.Row, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	c := exec.Command(self, fmt.Sprintf("-child=%d", i), fmt.Sprintf("-short=%t", short))
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, fmt.Errorf("its row: %w", err)
	}
	return r, nil
}

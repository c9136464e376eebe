package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
)

// A command is the first word of frogpond's arguments, with flags of its own. run returns the exit
// code: 0 for success, 1 for a failure, 2 for bad flags.
type command struct {
	name, what string
	run        func(ctx context.Context, args []string, stdout, stderr io.Writer) int
}

// runCommand runs the command with that name, and returns its exit code. If the name is unknown, it
// lists the commands and returns 2.
func runCommand(ctx context.Context, name string, args []string, stdout, stderr io.Writer) int {
	if name == "help" {
		fmt.Fprintln(stdout, "frogpond plays levels (frogpond -h: its flags), or with a command:")
		listCommands(stdout)
		return 0
	}
	for _, c := range commands {
		if c.name == name {
			return c.run(ctx, args, stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "frogpond: unexpected argument %q; the commands are:\n", name)
	listCommands(stderr)
	return 2
}

func listCommands(w io.Writer) {
	for _, c := range commands {
		fmt.Fprintf(w, "  frogpond %-8s %s\n", c.name, c.what)
	}
	fmt.Fprintf(w, "  frogpond %-8s %s\n", "help", "print this list")
}

// newFlags returns the flag set of a command; usage describes its arguments.
func newFlags(name, usage string, stderr io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprintf(stderr, "Usage: frogpond %s %s\n", name, usage)
		f.PrintDefaults()
	}
	return f
}

// parseOne parses flags and the one argument among them. If ok is false, it has printed the reason,
// and the program should exit with code.
func parseOne(f *flag.FlagSet, args []string, what string) (arg string, code int, ok bool) {
	var rest []string
	for err := f.Parse(args); ; err = f.Parse(args) {
		if errors.Is(err, flag.ErrHelp) {
			return "", 0, false
		}
		if err != nil {
			return "", 2, false
		}
		if f.NArg() == 0 {
			break
		}
		rest, args = append(rest, f.Arg(0)), f.Args()[1:]
	}
	if len(rest) != 1 {
		fmt.Fprintf(f.Output(), "frogpond %s: needs one %s, not %d\n", f.Name(), what,
			len(rest))
		return "", 2, false
	}
	return rest[0], 0, true
}

// parseFlags parses flags, refuses arguments, and calls check. If ok is false, it has printed the
// reason, and the program should exit with code.
func parseFlags(f *flag.FlagSet, args []string, check func() error) (code int, ok bool) {
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0, false
	}
	if err != nil {
		return 2, false
	}
	if err = check(); f.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(f.Output(), "frogpond %s: %v\n", f.Name(), err)
		return 2, false
	}
	return 0, true
}

// printResult writes the result of a command in one piece: as JSON, or as tell writes it.
func printResult(stdout io.Writer, asJSON bool, result any, tell func(io.Writer)) error {
	var text bytes.Buffer
	if asJSON {
		e := json.NewEncoder(&text)
		e.SetIndent("", "  ")
		if err := e.Encode(result); err != nil {
			return err
		}
	} else {
		tell(&text)
	}
	_, err := stdout.Write(text.Bytes())
	return err
}

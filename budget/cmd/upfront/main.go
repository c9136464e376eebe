// Command upfront checks plans, compares reports, and reads recordings, graphs and snapshots.
//
//	upfront plan check|draw|suggest|fleet FILE...
//	upfront report draw|diff REPORT...
//	upfront check REPORT... --against BASE
//	upfront replay TRACE... --plan FILE
//	upfront profile URL|REPORT
//	upfront flow check|compile|strip|draw|trace|export FILE
//	upfront save diff A B | show FILE
//
// Install it from a checkout: cd budget/cmd && go install ./upfront
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// The exit codes of every command, as in diff(1).
const (
	codeFine    = 0
	codeFound   = 1 // files differ, or have faults
	codeTrouble = 2 // a faulty command line, or a file or URL that can't be read or written
)

const exitCodes = "Exit code: 0 done, 1 faults were found or files differ, 2 trouble."

// found is an error that is a command's answer. Without a text, the answer has been printed.
type found struct{ error }

func (f found) Error() string {
	if f.error == nil {
		return ""
	}
	return f.error.Error()
}

func (f found) Unwrap() error { return f.error }

func foundBy(err error) error {
	if err == nil {
		return nil
	}
	return found{err}
}

// codeOf returns the exit code of an error. For several errors it returns the worst.
func codeOf(err error) (code int) {
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range list.Unwrap() {
			code = max(code, codeOf(err))
		}
		return code
	}
	switch {
	case err == nil:
		return codeFine
	case errors.As(err, new(found)):
		return codeFound
	}
	return codeTrouble
}

func run(args []string, stdout, stderr io.Writer) (code int) {
	t := newTool(stdout, stderr)
	c := newCommand(t)
	c.SetArgs(args)
	var help bytes.Buffer // and the rest of cobra's output
	c.SetOut(&help)
	c.SetErr(stderr)
	err := c.Execute()
	if err != nil {
		t.json = t.json || asksJSON(args) // cobra may not have read all of a faulty line
	}
	if help.Len() != 0 {
		err = errors.Join(err, t.printText(help.String()))
	}
	t.progress.end()
	if err != nil && err.Error() != "" {
		if t.json && !t.printed {
			err = errors.Join(err, t.printJSON(failed{err.Error()}))
		}
		fmt.Fprintln(stderr, printable(err.Error()))
	}
	return codeOf(err)
}

// asksJSON reports whether a command line has --json, even if it is faulty.
func asksJSON(args []string) (asks bool) {
	for _, arg := range args {
		switch value, given := strings.CutPrefix(arg, "--json="); {
		case arg == "--":
			return asks
		case arg == "--json":
			asks = true
		case given:
			asks, _ = strconv.ParseBool(value)
		}
	}
	return asks
}

type failed struct {
	Error string `json:"error"`
}

func newCommand(t *tool) *cobra.Command {
	root := &cobra.Command{
		Use:   "upfront",
		Short: "the tool of the upfront memory runtime",
		Long: `The tool of the upfront memory runtime: it reads plans of budgets, reports and recordings
of their use, graphs of level scripts, and snapshots of a game's state.

` + exitCodes + `
With --json a command prints one JSON object and nothing else; an error is {"error": "..."}.
A command that takes longer than a second shows its progress on stderr, if that is a
terminal. Colours are for terminals; NO_COLOR turns them off.`,
		SilenceErrors:     true, // run prints it
		SilenceUsage:      true, // the faults of a file are enough
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.PersistentFlags().BoolVar(&t.json, "json", false, "print one JSON object and nothing else")
	root.AddCommand(newPlanCommand(t), newReportCommand(t), newCheckCommand(t), newReplayCommand(t), newProfileCommand(t), newFlowCommand(t), newSaveCommand(t))
	return root
}

// group returns a command that only has other commands.
func group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Long:  long,
		Args:  unknown, // otherwise an unknown command would print help, with code 0
		RunE: func(c *cobra.Command, _ []string) error {
			return fmt.Errorf("a command is missing; see %s -h", c.CommandPath())
		},
	}
	c.SuggestionsMinimumDistance = 2
	c.AddCommand(commands...)
	return c
}

// unknown refuses an unknown command of a group, and suggests similar names.
func unknown(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if names := c.SuggestionsFor(args[0]); len(names) != 0 {
		hint = "; did you mean " + strings.Join(names, " or ") + "?"
	}
	return fmt.Errorf("%s has no command %q%s", c.CommandPath(), args[0], hint)
}

// takes refuses fewer or more arguments than a command takes.
func takes(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if n := len(args); n < least || n > most {
			return fmt.Errorf("arguments given: %d; usage: %s %s", n, c.Parent().CommandPath(), c.Use)
		}
		return nil
	}
}

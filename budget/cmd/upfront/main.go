// Command upfront checks plans, compares reports, and reads recordings, graphs and snapshots.
//
//	upfront plan check|draw|diff|merge|suggest|fleet FILE...
//	upfront report draw|diff REPORT...
//	upfront check REPORT... --against BASE
//	upfront replay TRACE... --plan FILE
//	upfront profile URL|REPORT|PROFILE
//	upfront flow check|compile|strip|draw|diff|merge|trace|export FILE...
//	upfront save diff A B | show FILE | convert FILE --against NEW
//	upfront completion bash|zsh|fish|powershell
//
// Install it from a checkout: cd budget/cmd && go install ./upfront
package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// The exit codes of every command, as in diff(1).
const (
	codeFine    = 0
	codeFound   = 1 // see founds
	codeTrouble = 2 // a wrong command line, or a file or URL that can't be read or written
)

// founds are the meanings of the exit code 1, by command. The other commands don't have that code.
var founds = map[string]string{
	"check":        "more growth or use than allowed",
	"flow check":   "an error of a graph",
	"flow compile": "an error of a graph",
	"flow diff":    "a difference",
	"flow draw":    "an error of a graph",
	"flow export":  "an error of a graph",
	"flow merge":   "a conflict or an error",
	"flow strip":   "an error of a graph",
	"flow trace":   "an error of a graph",
	"plan check":   "an error of a plan",
	"plan diff":    "a difference",
	"plan draw":    "an error of a plan",
	"plan fleet":   "an error of a plan, or no sum",
	"plan merge":   "a conflict or an error",
	"profile":      "an error of a report",
	"replay":       "a recording doesn't fit",
	"report diff":  "a difference",
	"save convert": "a snapshot that doesn't convert",
	"save diff":    "a difference",
}

// exitCodes adds the exit codes to the help of each command that isn't a group.
func exitCodes(c *cobra.Command) {
	for _, sub := range c.Commands() {
		exitCodes(sub)
	}
	if c.HasSubCommands() {
		return
	}
	_, path, _ := strings.Cut(c.CommandPath(), " ")
	one := ""
	if found := founds[path]; found != "" {
		one = "1 " + found + ", "
	}
	c.Long += "\n\n" + wrap("Exit code: 0 success, "+one+"2 trouble.", "")
}

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
		t.json = t.json || asksJSON(args) // cobra may not have read all of a wrong line
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

// asksJSON reports whether a command line has --json, even if it is wrong.
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
		Long: `The tool of the upfront memory runtime: it reads plans of budgets, reports and
recordings of their use, graphs of level scripts, and snapshots of a game's
state.

The exit code is 0 for success, 2 for trouble (a wrong command line, or a file
or URL that can't be read or written), and 1 as the help of the command says.
With --json stdout has one JSON object and nothing else. An error of the command
is its member "error"; stderr has the same text. plan check and flow check have
the errors of each file in its entry. A command that takes longer than a second
shows its progress on stderr, if that is a terminal. Colours are for terminals;
NO_COLOR turns them off. Names are cut in a table that would be wider than 80
columns; --json has them whole.`,
		Version:           version(debug.ReadBuildInfo()),
		SilenceErrors:     true, // run prints it
		SilenceUsage:      true, // the errors of a file are enough
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ",
		fmt.Sprintf(".FlagUsagesWrapped %d ", columns)))
	root.PersistentFlags().BoolVar(&t.json, "json", false, "print one JSON object and nothing else")
	root.AddCommand(newPlanCommand(t), newReportCommand(t), newCheckCommand(t), newReplayCommand(t),
		newProfileCommand(t), newFlowCommand(t), newSaveCommand(t), newCompletionCommand(t))
	root.SetHelpCommand(helpCommand())
	root.InitDefaultHelpCmd()
	exitCodes(root)
	return root
}

// version returns the module's version, the revision of the source, and the Go that built the tool,
// as far as the build recorded them.
func version(info *debug.BuildInfo, known bool) string {
	if !known {
		return "upfront: the build recorded no version"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	revision := "no revision recorded"
	if r := settings["vcs.revision"]; r != "" {
		revision = "revision " + r
		if settings["vcs.modified"] == "true" {
			revision += ", modified"
		}
	}
	return fmt.Sprintf("upfront %s\n%s\n%s", cmp.Or(info.Main.Version, "(devel)"), revision, info.GoVersion)
}

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "explains a command, as -h does",
		Long:    "Explains a command, as -h does.",
		Example: "  upfront help plan check",
		RunE: func(c *cobra.Command, names []string) error {
			of, rest, err := c.Root().Find(names)
			if err == nil && len(rest) != 0 {
				err = unknown(of, rest)
			}
			if err != nil {
				return err
			}
			of.InitDefaultHelpFlag()
			of.InitDefaultVersionFlag()
			return of.Help()
		},
	}
}

func newCompletionCommand(t *tool) *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "writes a script that completes commands in a shell",
		Long: `Writes a script that completes commands and flags in a shell: bash, zsh, fish or
powershell. The script for bash needs the package bash-completion.`,
		Example: `  upfront completion bash > /etc/bash_completion.d/upfront
  upfront completion zsh > "${fpath[1]}/_upfront"
  upfront completion fish > ~/.config/fish/completions/upfront.fish
  upfront completion powershell | Out-String | Invoke-Expression`,
		Args:      takes(1, 1),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(c *cobra.Command, shells []string) (err error) {
			var script bytes.Buffer
			switch root := c.Root(); shells[0] {
			case "bash":
				err = root.GenBashCompletionV2(&script, true)
			case "zsh":
				err = root.GenZshCompletion(&script)
			case "fish":
				err = root.GenFishCompletion(&script, true)
			case "powershell":
				err = root.GenPowerShellCompletionWithDesc(&script)
			default:
				err = fmt.Errorf("shell %q: must be bash, zsh, fish or powershell", shells[0])
			}
			if err != nil {
				return err
			}
			return t.printText(script.String())
		},
	}
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

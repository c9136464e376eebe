package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/upfront-mem/upfront/budget/save"
)

// ended is an error with an exit code of its own; without a text it is no trouble.
type ended struct {
	error
	code int
}

func (e ended) Error() string {
	if e.error == nil {
		return ""
	}
	return e.error.Error()
}

func (e ended) Unwrap() error { return e.error }

// The exit codes of save: those of diff(1).
const (
	codeDiffer  = 1
	codeTrouble = 2
)

func newSaveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "save",
		Short: "snapshots of a game's state in files, as its package save writes them",
		Args:  trouble(cobra.NoArgs), // else what is no command ends as if files were equal
		RunE: func(c *cobra.Command, _ []string) error {
			return ended{errors.New("diff or show?"), codeTrouble}
		},
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return ended{err, codeTrouble} })
	c.AddCommand(diffCommand(), showCommand())
	return c
}

func diffCommand() *cobra.Command {
	var names string
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "says where two snapshots differ first, and both values",
		Long: `Says where two snapshots differ first, and both values.

A snapshot that a checked build of the game wrote after the same load is a map: with
it all that was made has a name, with its scope, its label, and the line of code.

Exit code: 0 they are equal, 1 they differ, 2 trouble.`,
		Args: trouble(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			var files [3]io.Reader
			for i, name := range append(args[:2:2], names) {
				if name == "" && i == 2 {
					break
				}
				file, err := os.Open(name)
				if err != nil {
					return ended{err, codeTrouble}
				}
				defer file.Close()
				files[i] = file
			}
			d, differ, err := save.DiffFiles(files[0], files[1], files[2])
			switch {
			case err != nil:
				return ended{err, codeTrouble}
			case !differ:
				fmt.Fprintln(c.OutOrStdout(), "equal")
				return nil
			}
			fmt.Fprintln(c.OutOrStdout(), d)
			return ended{code: codeDiffer}
		},
	}
	c.Flags().StringVar(&names, "map", "", "a snapshot that a checked build wrote")
	return c
}

func showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show FILE",
		Short: "says what a snapshot holds",
		Args:  trouble(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, names []string) error {
			file, err := os.Open(names[0])
			if err != nil {
				return ended{err, codeTrouble}
			}
			defer file.Close()
			if err := save.Show(c.OutOrStdout(), file); err != nil {
				return ended{fmt.Errorf("%s: %w", names[0], err), codeTrouble}
			}
			return nil
		},
	}
}

// trouble gives what args says an exit code.
func trouble(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, names []string) error {
		if err := args(c, names); err != nil {
			return ended{err, codeTrouble}
		}
		return nil
	}
}

// codeOf is the exit code of an error.
func codeOf(err error) int {
	if e := (ended{}); errors.As(err, &e) {
		return e.code
	}
	return 1
}

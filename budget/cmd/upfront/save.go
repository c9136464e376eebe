package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

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
	var maps []string
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "says where two snapshots differ first, and both values",
		Long: `Says where two snapshots differ first, and both values.

A snapshot that a checked build of the game wrote after the same load is a map: with
it all that was made has a name, with its scope, its label, and the line of code.

Exit code: 0 they are equal, 1 they differ, 2 trouble.`,
		Args: trouble(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, names []string) error {
			var files []io.Reader
			for _, name := range append(slices.Clone(names), maps...) {
				file, err := os.Open(name)
				if err != nil {
					return ended{err, codeTrouble}
				}
				defer file.Close()
				files = append(files, file)
			}
			d, differ, err := save.DiffFiles(files[0], files[1], files[2:]...)
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
	c.Flags().StringArrayVar(&maps, "map", nil,
		"a snapshot that a checked build wrote; may be given again")
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
			f, err := save.ReadFile(file)
			if err != nil {
				return ended{fmt.Errorf("%s: %w", names[0], err), codeTrouble}
			}
			if err := show(c.OutOrStdout(), f); err != nil {
				return ended{err, codeTrouble}
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

func show(out io.Writer, f *save.File) error {
	fmt.Fprintf(out, "snapshot %d of plan %q: %d bytes, fingerprint %#x\n", f.Number, f.Layout.Plan,
		len(f.Image), f.Fingerprint)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	image := f.Image
	for i := range f.Layout.Parts {
		p := &f.Layout.Parts[i]
		fmt.Fprintf(w, "region %q: %d bytes from offset %#x on, root %s\n", p.Region, p.Size, p.Mark,
			p.Root)
		for k, q := range p.Pools {
			free, retired := binary.LittleEndian.Uint32(image[8*k:]),
				binary.LittleEndian.Uint32(image[8*k+4:])
			live := int64(q.Count) - int64(free) - int64(retired)
			fmt.Fprintf(w, "  offset %#x\tpool of %s\t%d chunks of %d bytes, %d live\n", p.Mark+q.Offset,
				q.Type, q.Count, q.Stride, live)
		}
		for _, o := range p.Objects {
			if !o.Pool {
				fmt.Fprintf(w, "  offset %#x\t%s\t%d bytes%s\n", p.Mark+o.Offset, o.Type, o.Size, made(o))
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
		_, _, next := p.Span(0)
		image = image[next:]
	}
	for _, t := range f.Layout.Types {
		if t.Kind == "struct" {
			var fields []string
			for _, field := range t.Fields {
				fields = append(fields, field.Name+" "+field.Type)
			}
			fmt.Fprintf(w, "type %s\t%d bytes\t%s\n", t.Name, t.Size, strings.Join(fields, ", "))
		}
	}
	return w.Flush()
}

func made(o save.Object) string {
	text := ", scope " + o.Scope
	if o.Label != "" {
		text += ", label " + o.Label
	}
	if o.Made != "" {
		text += ", " + o.Made
	}
	return text
}

// codeOf is the exit code of an error.
func codeOf(err error) int {
	if e := (ended{}); errors.As(err, &e) {
		return e.code
	}
	return 1
}

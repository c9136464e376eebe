package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/upfront-mem/upfront/budget/save"
)

func newSaveCommand(t *tool) *cobra.Command {
	return group("save", "snapshots of a game's state: compared, listed and converted",
		"Snapshots of a game's state, in files that package save writes (Ring.Write).",
		diffCommand(t), showCommand(t), convertCommand(t))
}

func diffCommand(t *tool) *cobra.Command {
	var names string
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "reports the first difference between two snapshots",
		Long: `Reports the first difference between two snapshots, with both values.

--map names a snapshot that a checked build of the game wrote after the same
load. Then each object has a name, its scope, its label, and its line of code.`,
		Example: "  upfront save diff host.save guest.save --map checked.save",
		Args:    takes(2, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			var files [3]io.Reader
			for i, name := range append(args[:2:2], names) {
				if name == "" && i == 2 {
					break
				}
				file, err := os.Open(name)
				if err != nil {
					return err
				}
				defer file.Close()
				files[i] = file
			}
			d, differ, err := save.DiffFiles(files[0], files[1], files[2])
			if err != nil {
				return byFile(err, args[0], args[1], names)
			}
			result := saveDiff{Equal: !differ}
			if differ {
				d := saveDifference(d)
				result.Difference = &d
			}
			err = t.print(result, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, d) // "equal" if there is no difference
				return err
			})
			if err == nil && differ {
				err = found{}
			}
			return err
		},
	}
	c.Flags().StringVar(&names, "map", "", "a snapshot that a checked build wrote")
	return c
}

// byFile returns an error of DiffFiles with the files' names instead of A, B and "the map".
func byFile(err error, a, b, names string) error {
	for which, file := range map[string]string{"A": a, "B": b, "the map": names} {
		if text, ok := strings.CutPrefix(err.Error(), which+": "); ok {
			return fmt.Errorf("%s: %s", file, text)
		}
	}
	legend := "A is " + a + ", B is " + b
	if names != "" {
		legend += ", the map is " + names
	}
	return fmt.Errorf("%w (%s)", err, legend)
}

// saveDiff is the output of save diff.
type saveDiff struct {
	Equal      bool            `json:"equal"`
	Difference *saveDifference `json:"difference,omitempty"`
}

// saveDifference is a save.Difference in JSON.
type saveDifference struct {
	Region string `json:"region"`
	Offset uint64 `json:"offset"`
	Object string `json:"object,omitempty"`
	Type   string `json:"type,omitempty"`
	Field  string `json:"field,omitempty"`
	Kind   string `json:"kind,omitempty"`
	A      string `json:"a"`
	B      string `json:"b"`
	Scope  string `json:"scope,omitempty"`
	Label  string `json:"label,omitempty"`
	Made   string `json:"made,omitempty"`
}

func showCommand(t *tool) *cobra.Command {
	return &cobra.Command{
		Use:   "show FILE",
		Short: "lists the contents of a snapshot",
		Long: `Lists the contents of a snapshot: sizes, pools and types and, for a checked
build, every object with its line of code.`,
		Example: "  upfront save show room.save",
		Args:    takes(1, 1),
		RunE: func(_ *cobra.Command, names []string) error {
			file, err := os.Open(names[0])
			if err != nil {
				return err
			}
			defer file.Close()
			var text strings.Builder
			if err := save.Show(&text, file); err != nil {
				return fmt.Errorf("%s: %w", names[0], err)
			}
			var lines strings.Builder
			for line := range strings.Lines(text.String()) {
				lines.WriteString(wrap(strings.TrimSuffix(line, "\n"), "    ") + "\n")
			}
			return t.printText(lines.String())
		},
	}
}

// saveConvert is the output of save convert.
type saveConvert struct {
	Converts bool          `json:"converts"`
	Changes  []saveChanged `json:"changes,omitempty"`
}

// saveChanged is a save.Conversion in JSON.
type saveChanged struct {
	Name    string `json:"name"`
	File    string `json:"file,omitempty"`
	Here    string `json:"here,omitempty"`
	Action  string `json:"action"`
	Refused bool   `json:"refused,omitempty"`
}

func convertCommand(t *tool) *cobra.Command {
	var against string
	c := &cobra.Command{
		Use:   "convert FILE --against NEW",
		Short: "reports if a newer program reads a snapshot, and how",
		Long: `Reports if a newer program reads a snapshot of an older one, and the types,
fields, pools and containers that differ. NEW is a snapshot that the newer
program wrote after its load. It lists the program's changes (State.Version).

The command writes no file: the program converts a snapshot when it reads it.`,
		Example: "  upfront save convert yesterday.save --against loaded.save",
		Args:    takes(1, 1),
		RunE: func(_ *cobra.Command, names []string) error {
			if against == "" {
				return errors.New("--against names a snapshot of the newer program")
			}
			var files [2]*os.File
			for i, name := range []string{names[0], against} {
				file, err := os.Open(name)
				if err != nil {
					return err
				}
				defer file.Close()
				files[i] = file
			}
			list, err := save.ConvertFiles(files[0], files[1])
			if err != nil {
				return byFile(err, names[0], against, "")
			}
			result := saveConvert{Converts: true}
			for _, of := range list {
				result.Converts = result.Converts && !of.Refused
				result.Changes = append(result.Changes, saveChanged{of.Name, of.File, of.Here, of.Action, of.Refused})
			}
			err = t.print(result, func(w io.Writer) error {
				says := "%s converts\n"
				if !result.Converts {
					says = "%s doesn't convert\n"
				} else if list == nil {
					says = "%s has the same types\n"
				}
				fmt.Fprintf(w, says, names[0])
				for _, of := range list {
					text := "  " + of.String()
					if of.Refused {
						text = "  refused: " + of.String()
					}
					if _, err := fmt.Fprintln(w, wrap(text, "    ")); err != nil {
						return err
					}
				}
				return nil
			})
			if err == nil && !result.Converts {
				err = found{}
			}
			return err
		},
	}
	c.Flags().StringVar(&against, "against", "", "a snapshot that the newer program wrote")
	return c
}

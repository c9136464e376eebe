package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/cmd/internal/merge"
	"github.com/upfront-mem/upfront/platform/jsonfile"
	"github.com/upfront-mem/upfront/scope/flow"
	"github.com/upfront-mem/upfront/scope/flow/source"
)

// versions reads the versions of one kind of file, to compare and merge them.
type versions struct {
	kind   string // plan, graph
	group  string // of its commands: plan, flow
	schema *merge.Schema
	// prepare reads the files that check needs, if it needs some.
	prepare func() error
	// read returns the text of a file. The error has all errors of the file.
	read func(name string) ([]byte, error)
	// is reports whether a text with errors is meant to be of this kind.
	is func(data []byte) bool
	// check returns the errors of a merged file that is going to be name.
	check func(name string, data []byte) error
}

// tree reads a file by name and key.
func (v versions) tree(name string) (*merge.Tree, error) {
	data, err := v.read(name)
	if err != nil {
		return nil, err
	}
	tree, err := merge.Parse(name, data, v.schema)
	return tree, foundBy(err)
}

// base reads the version that both others were made of. Its errors don't matter if they are of
// values, and an empty file is an object without keys: git's base of a file that both branches
// added.
func (v versions) base(name string) (*merge.Tree, error) {
	data, err := jsonfile.ReadFile(name, reportMax, errTooLarge.Error())
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		data = []byte("{}")
	} else if !v.is(data) {
		return nil, found{fmt.Errorf("%s:1: not a %s", name, v.kind)}
	}
	tree, err := merge.Parse(name, data, v.schema)
	return tree, foundBy(err)
}

// both reads two versions; the error has those of both.
func (v versions) both(a, b string) (trees [2]*merge.Tree, err error) {
	of, inA := v.tree(a)
	other, inB := v.tree(b)
	return [2]*merge.Tree{of, other}, errors.Join(inA, inB)
}

// faults returns the errors of a merge, which isn't written then, or of A or B if they have some.
func (v versions) faults(names []string, merged string, data []byte) error {
	fault := v.check(merged, data)
	if fault == nil {
		return nil
	}
	for _, name := range names {
		data, err := v.read(name)
		if err = cmp.Or(err, v.check(name, data)); err != nil {
			return err
		}
	}
	return fmt.Errorf("the merge has errors, and isn't written; their lines are its own:\n%w", fault)
}

// diffed is the output of plan diff and flow diff.
type diffed struct {
	A       string         `json:"a"`
	B       string         `json:"b"`
	Equal   bool           `json:"equal"`
	Changes []merge.Change `json:"changes,omitempty"`
	Cost    *costs         `json:"cost,omitempty"` // of plans
}

func (v versions) diff(names []string) (d diffed, err error) {
	trees, err := v.both(names[0], names[1])
	if err != nil {
		return d, trouble(err) // 1 is the code of a difference
	}
	d = diffed{A: names[0], B: names[1], Changes: merge.Diff(trees[0], trees[1])}
	d.Equal = len(d.Changes) == 0
	return d, nil
}

// diffResult prints a diff, or draws it to the file out.
func (t *tool) diffResult(d diffed, out string, picture func(io.Writer) error) (err error) {
	switch {
	case out == "":
		err = t.print(d, func(w io.Writer) error { return t.changes(w, d) })
	case out == d.A, out == d.B:
		err = fmt.Errorf("-o %s: that is a file to compare", out)
	default:
		err = t.draw(out, "", picture)
	}
	if err != nil || d.Equal {
		return err
	}
	return found{}
}

// costs are the costs of two plans.
type costs struct {
	A budget.Cost `json:"a"`
	B budget.Cost `json:"b"`
	// Parts are the regions, with all their slots, and the frame and scratch, if they differ.
	Parts []costRow `json:"parts,omitempty"`
	// Request is the memory that plan fleet requests; without one, Why says why.
	Request costRow `json:"request"`
	Why     string  `json:"why,omitempty"`
}

// costRow is a cost in bytes.
type costRow struct {
	Name string `json:"name,omitempty"`
	A    uint64 `json:"a"`
	B    uint64 `json:"b"`
}

func costsOf(plans [2]budget.Plan) (c *costs, err error) {
	c = &costs{}
	if c.A, err = plans[0].Cost(); err != nil {
		return nil, err
	}
	if c.B, err = plans[1].Cost(); err != nil {
		return nil, err
	}
	a, b := partsOf(plans[0]), partsOf(plans[1])
	for _, row := range b {
		if !slices.ContainsFunc(a, func(r costRow) bool { return r.Name == row.Name }) {
			a = append(a, costRow{Name: row.Name})
		}
	}
	for _, row := range a {
		if i := slices.IndexFunc(b, func(r costRow) bool { return r.Name == row.Name }); i >= 0 {
			row.B = b[i].A
		}
		if row.A != row.B {
			c.Parts = append(c.Parts, row)
		}
	}
	for i, name := range []string{"A", "B"} {
		if err := unbounded(plans[i]); err != nil {
			c.Why = name + ": " + err.Error()
			return c, nil
		}
	}
	c.Request.A, c.Request.B = usualFleet.sum(c.A).Total, usualFleet.sum(c.B).Total
	return c, nil
}

// partsOf returns the bytes of a plan's parts, in column A, without a region that takes the rest.
func partsOf(p budget.Plan) (rows []costRow) {
	for _, r := range p.Regions {
		if r.Size == budget.Rest {
			continue
		}
		rows = append(rows, costRow{Name: r.Name, A: r.Size * uint64(max(1, r.Slots))})
	}
	rows = append(rows, costRow{Name: "frame", A: p.Frame.Size * uint64(p.Frame.Buffers)})
	return append(rows,
		costRow{Name: "scratch", A: p.Scratch.Size * uint64(p.Scratch.Workers*cmp.Or(p.Scratch.Each, 2))})
}

// costs writes the costs that differ, in bytes, and the request.
func (t *tool) costs(w io.Writer, c *costs) error {
	if c == nil {
		return nil
	}
	rows := [][]cell{{left("cost in bytes"), right("A"), right("B"), right("change")}}
	add := func(name string, a, b uint64) {
		change, paint := "", colour("")
		switch {
		case a < b:
			change, paint = fmt.Sprint("+", b-a), red
		case a > b:
			change, paint = fmt.Sprint("-", a-b), green
		}
		rows = append(rows, []cell{left(name), right(fmt.Sprint(a)), right(fmt.Sprint(b)), {change, true, paint}})
	}
	for _, row := range []costRow{{"addresses", c.A.Addresses, c.B.Addresses},
		{"resident at most", c.A.Resident4K, c.B.Resident4K}, {"with 64 KiB pages", c.A.Resident64K, c.B.Resident64K},
		{"Go heap", c.A.GoHeap, c.B.GoHeap}, {"C heap", c.A.CHeap, c.B.CHeap},
		{"quotas", c.A.Quotas, c.B.Quotas}} {
		if row.A != row.B {
			add(row.Name, row.A, row.B)
		}
	}
	for _, row := range c.Parts {
		add("  "+row.Name, row.A, row.B)
	}
	says := fmt.Sprintf("plan fleet requests %d bytes, as before", c.Request.B)
	switch {
	case c.Why != "":
		says = "plan fleet can't request memory: " + c.Why
	case c.Request.A != c.Request.B:
		says = fmt.Sprintf("plan fleet requests %d bytes instead of %d", c.Request.B, c.Request.A)
	}
	if len(rows) > 1 {
		if err := t.table(w, rows); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, wrap(says, "  "))
	return err
}

// changes writes the text of a diff, in lines of 80 columns.
func (t *tool) changes(w io.Writer, d diffed) error {
	if d.Equal {
		_, err := fmt.Fprintln(w, "equal")
		return err
	}
	wide := 0
	for _, c := range d.Changes {
		wide = max(wide, min(len([]rune(c.Path)), 38))
	}
	for _, c := range d.Changes {
		sign, paint, says := "~", colour(""), ""
		switch c.Kind {
		case merge.Added:
			sign, paint, says = "+", green, oneLine(c.To)
		case merge.Gone:
			sign, paint, says = "-", red, oneLine(c.From)
		case merge.Moved:
			sign, paint, says = ">", faint, fmt.Sprintf("%s from place %d to %d", oneLine(c.To), c.Was, c.At)
			says = strings.TrimSpace(says)
		default:
			room := 80 - 2 - wide - 2 - 3
			from := cut(oneLine(c.From), max(room/2, room-len([]rune(oneLine(c.To)))))
			says = from + " → " + oneLine(c.To)
		}
		path := cut(c.Path, 38)
		line := fmt.Sprintf("%s %s%s  %s", sign, path, strings.Repeat(" ", wide-len([]rune(path))), says)
		if _, err := fmt.Fprintln(w, t.paint(paint, strings.TrimSpace(cut(line, 80)))); err != nil {
			return err
		}
	}
	return t.costs(w, d.Cost)
}

// oneLine returns a value without the space between its parts.
func oneLine(text []byte) string {
	var b bytes.Buffer
	_ = json.Compact(&b, text) // it is JSON, or empty
	return jsonfile.Printable(b.String())
}

// cut returns at most the first characters of a text, with … for the others.
func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:max(most-1, 0)]) + "…"
	}
	return text
}

// merged is the output of plan merge and flow merge.
type merged struct {
	File      string           `json:"file"`            // the merged file
	Bytes     int              `json:"bytes,omitempty"` // written
	Conflicts []merge.Conflict `json:"conflicts,omitempty"`
}

// text returns the conflicts: of each, the path, and the three values with their lines.
func (m merged) text() string {
	var b strings.Builder
	if len(m.Conflicts) != 0 {
		state := "it has the values of A"
		if m.Bytes == 0 {
			state = "nothing is written"
		}
		fmt.Fprintf(&b, "%s: %s; %s\n", printable(m.File), counted(uint64(len(m.Conflicts)), "conflict"), state)
	}
	for _, c := range m.Conflicts {
		what := ""
		if c.Order {
			what = ", the order"
		}
		fmt.Fprintf(&b, "%s%s:\n", cut(c.Path, 60), what)
		for _, v := range []struct {
			name string
			line int
			text []byte
		}{{"base", c.LineBase, c.Base}, {"A", c.LineA, c.A}, {"B", c.LineB, c.B}} {
			if v.text == nil {
				fmt.Fprintf(&b, "  %-10s none\n", v.name)
			} else {
				fmt.Fprintf(&b, "  %-10s %s\n", fmt.Sprint(v.name, ":", v.line), cut(oneLine(v.text), 66))
			}
		}
	}
	return b.String()
}

// mergeCommand returns the merge command of a kind of file.
func (t *tool) mergeCommand(v versions) *cobra.Command {
	var out, name string
	group := v.group
	c := &cobra.Command{
		Use:   "merge BASE A B",
		Short: "merges two versions of a " + v.kind + " that were both made of BASE, into A",
		Long: `Merges two versions of a ` + v.kind + ` that were both made of BASE: A gets the changes
that B made. The files are compared by name and key, so changes of different
keys don't conflict. A value that both changed differently is a conflict, and so
is a part that one removed and the other changed. Each conflict is listed with
its three values and their lines.

Without a conflict the result is written to A, or to the file of -o. With a
conflict, A stays as it is, and -o writes a file with the value of A for each
conflict. A result with an error is never written.

As a driver of git merge, with --name for its messages:

  git config merge.upfront-` + v.kind + `.driver \
    "upfront ` + group + ` merge %O %A %B -o %A --name %P"
  git config merge.upfront-` + v.kind + `.recursive binary
  echo "*.` + v.kind + `.json merge=upfront-` + v.kind + `" >> .gitattributes`,
		Example: "  upfront " + group + " merge base.json a.json b.json\n  upfront " + group +
			" merge base.json a.json b.json -o both.json",
		Args: takes(3, 3),
		RunE: func(_ *cobra.Command, names []string) error {
			if err := v.prepare(); err != nil {
				return err
			}
			base, err := v.base(names[0])
			trees, faults := v.both(names[1], names[2])
			if err := errors.Join(err, faults); err != nil {
				return sides(err, name, names)
			}
			data, conflicts := merge.Merge(base, trees[0], trees[1])
			result := merged{File: cmp.Or(name, out, names[1]), Conflicts: conflicts}
			if result.File == "-" {
				result.File = "standard output"
			}
			if err := v.faults(names[1:], result.File, data); err != nil {
				if conflicts != nil {
					err = fmt.Errorf("%s%w", result.text(), err)
				}
				return found{sides(err, name, names)}
			}
			if out == "-" {
				result.Bytes = len(data)
				err = t.write(out, data)
				if conflicts != nil {
					err = errors.Join(err, found{errors.New(strings.TrimSuffix(result.text(), "\n"))})
				}
				return err
			}
			if out != "" || conflicts == nil {
				if err := replace(cmp.Or(out, names[1]), data); err != nil {
					return err
				}
				result.Bytes = len(data)
			}
			err = t.print(result, func(w io.Writer) error {
				_, err := io.WriteString(w, result.text())
				return err
			})
			if conflicts != nil {
				err = errors.Join(found{}, err)
			}
			return err
		},
	}
	outFlag(c, &out, "file of the result, also with conflicts (default A, without)")
	c.Flags().StringVar(&name, "name", "", "name of the file in messages (default A)")
	return c
}

// sides returns an error whose lines begin with the sides of the merge in place of the temporary
// files that git makes of them.
func sides(err error, name string, names []string) error {
	if name == "" {
		return err
	}
	var text strings.Builder
	for line := range strings.Lines(err.Error()) {
		for i, side := range []string{"base", "A", "B"} {
			if rest, of := strings.CutPrefix(line, names[i]+":"); of {
				line = side + " of " + name + ":" + rest
				break
			}
		}
		text.WriteString(line)
	}
	if codeOf(err) == codeFound {
		return found{errors.New(text.String())}
	}
	return errors.New(text.String())
}

// replace writes a file as a whole: if it fails, the old file is as it was. A link stays, and the
// file that it leads to is replaced.
func replace(name string, data []byte) error {
	err := replaceFile(name, data)
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		err = link.Err
	} else if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err // of a temporary file
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func replaceFile(name string, data []byte) error {
	mode := os.FileMode(0o644)
	if _, err := os.Lstat(name); err == nil {
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return err
		}
		info, err := os.Stat(name)
		switch {
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return errors.New("not a regular file; -o - is standard output")
		}
		old, err := os.OpenFile(name, os.O_RDWR, 0) // it may be read-only
		if err != nil {
			return err
		}
		was, err := io.ReadAll(old)
		if err = errors.Join(err, old.Close()); err != nil || bytes.Equal(was, data) {
			return err
		}
		mode = info.Mode().Perm()
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".upfront-*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Chmod(mode), file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

// graphVersions reads graphs, checked against the vocabulary in the file host, if it has a name.
func graphVersions(host *string) versions {
	var vocabulary *flow.Vocabulary
	return versions{
		kind:   "graph",
		group:  "flow",
		schema: merge.Graph,
		prepare: func() error {
			if *host == "" {
				return nil
			}
			text, err := readFile(*host)
			if err != nil {
				return err
			}
			v, err := source.ReadVocabulary(*host, text)
			vocabulary = &v
			return foundBy(err)
		},
		read: func(name string) ([]byte, error) {
			data, err := readFile(name)
			if err != nil {
				return nil, err
			}
			if isBlob(data) {
				return nil, found{fmt.Errorf("%s: a blob; flow export writes it as JSON", name)}
			}
			_, err = source.Read(name, data)
			return data, foundBy(err)
		},
		is: func(data []byte) bool { return bytes.Contains(data, []byte(`"nodes"`)) && !isBlob(data) },
		check: func(name string, data []byte) error {
			graph, err := source.Read(name, data)
			if err != nil {
				return err
			}
			v := source.Guess(graph)
			if vocabulary != nil {
				v = *vocabulary
			}
			_, _, err = source.Compile(name, data, v)
			return err
		},
	}
}

func flowMergeCommand(t *tool) *cobra.Command {
	var host string
	c := t.mergeCommand(graphVersions(&host))
	hostFlag(c, &host)
	return c
}

var planVersions = versions{
	kind:    "plan",
	group:   "plan",
	schema:  merge.Plan,
	prepare: func() error { return nil },
	is: func(data []byte) bool {
		k := kindOf(data)
		return k != reportKind && k != timelineKind && !bytes.Contains(data, []byte(`"nodes"`))
	},
	read: func(name string) ([]byte, error) {
		if _, err := readPlan(name); err != nil {
			return nil, err
		}
		return jsonfile.ReadFile(name, reportMax, errTooLarge.Error())
	},
	check: func(name string, data []byte) error {
		plan, err := budget.ParsePlan(data)
		if err == nil {
			_, err = plan.Cost()
		}
		if err != nil {
			var lines []string
			for line := range strings.Lines(err.Error()) {
				if rest, ofLine := strings.CutPrefix(line, "line "); ofLine {
					line = name + ":" + rest
				}
				lines = append(lines, line)
			}
			err = errors.New(strings.Join(lines, ""))
		}
		return err
	},
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/cmd/internal/merge"
	"github.com/upfront-mem/upfront/platform/jsonfile"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/flow"
	"github.com/upfront-mem/upfront/scope/flow/source"
	"github.com/upfront-mem/upfront/scope/flow/view"
)

func newFlowCommand(t *tool) *cobra.Command {
	return group("flow", "graphs of level scripts: checked, compiled, drawn, merged, traced",
		`Graphs of level scripts: JSON that people write, or blobs that games load.

Most commands take either. --host names a vocabulary, the events and actions of
a game: JSON that the game prints (source.WriteVocabulary).`,
		checkCommand(t), compileCommand(t), stripCommand(t), drawCommand(t), flowDiffCommand(t), flowMergeCommand(t),
		traceCommand(t), exportCommand(t))
}

func checkCommand(t *tool) *cobra.Command {
	var host string
	c := &cobra.Command{
		Use:   "check FILE...",
		Short: "reports every error in graphs, and their sizes",
		Long: `Reports every error in graphs by its line and path, and the sizes of graphs
without an error. Without --host it doesn't check them against the game's events
and actions.`,
		Example: "  upfront flow check door.json lift.json --host host.json",
		Args:    takes(1, math.MaxInt),
		RunE: func(_ *cobra.Command, names []string) error {
			var result checkedGraphs
			var errs []error
			for _, name := range names {
				g, err := open(name, host, guess)
				errs = append(errs, err)
				result.add(name, host, g, err)
			}
			err := t.print(result, func(w io.Writer) error { return result.print(w) })
			return errors.Join(append(errs, err)...)
		},
	}
	hostFlag(c, &host)
	return c
}

// checkedGraphs is the output of flow check. As text, errors in graphs are errors of the command.
type checkedGraphs struct {
	Graphs []checkedGraph `json:"graphs"`
}

type checkedGraph struct {
	File  string      `json:"file"`
	Host  string      `json:"host,omitempty"`
	Fine  bool        `json:"fine"`
	Error string      `json:"error,omitempty"`
	Takes *graphSizes `json:"takes,omitempty"`
}

func (c *checkedGraphs) add(name, host string, g *graph, err error) {
	if err != nil {
		c.Graphs = append(c.Graphs, checkedGraph{File: name, Host: host, Error: err.Error()})
		return
	}
	takes := g.sizes()
	c.Graphs = append(c.Graphs, checkedGraph{File: name, Host: host, Fine: true, Takes: &takes})
}

func (c checkedGraphs) print(w io.Writer) error {
	for _, g := range c.Graphs {
		switch {
		case !g.Fine:
			continue
		case g.Host == "":
			fmt.Fprintf(w, "%s: fine, except for checks that need --host\n", printable(g.File))
		default:
			fmt.Fprintf(w, "%s: fine\n", printable(g.File))
		}
		if err := g.Takes.print(w); err != nil {
			return err
		}
	}
	return nil
}

func compileCommand(t *tool) *cobra.Command {
	var host, out string
	c := &cobra.Command{
		Use:   "compile FILE --host HOST",
		Short: "compiles a graph to a blob, FILE.blob, and reports its size",
		Long: `Compiles a graph to a blob, and reports its size. --host is required, unless
FILE is a blob, which has the types of its events and actions.`,
		Example: "  upfront flow compile door.json --host host.json -o level/door.blob",
		Args:    takes(1, 1),
		RunE: func(_ *cobra.Command, names []string) error {
			g, err := open(names[0], host, demand)
			if err != nil {
				return err
			}
			if out == "" {
				out = strings.TrimSuffix(names[0], filepath.Ext(names[0])) + ".blob"
			}
			if out == "-" {
				return t.write(out, g.data) // and no sizes
			}
			if err := output(out, g.data); err != nil {
				return err
			}
			takes := g.sizes()
			return t.print(compiled{written{out, len(g.data)}, takes}, takes.print)
		},
	}
	hostFlag(c, &host)
	outFlag(c, &out, "file of the blob")
	return c
}

// compiled is the output of flow compile.
type compiled struct {
	written
	Takes graphSizes `json:"takes"`
}

func stripCommand(t *tool) *cobra.Command {
	return &cobra.Command{
		Use:   "strip IN OUT",
		Short: "makes a smaller blob, without types and most names, for games",
		Long: `Makes a smaller blob from a blob, without types, and with no name but the
graph's. Games load and run it alike. Errors then name nodes by their indexes,
as "#3". No other command reads a stripped blob: keep the graph, or the original
blob.`,
		Example: "  upfront flow strip door.blob level/door.blob",
		Args:    takes(2, 2),
		RunE: func(_ *cobra.Command, names []string) error {
			data, err := readFile(names[0])
			if err != nil {
				return err
			}
			if !isBlob(data) {
				return found{fmt.Errorf("%s: not a blob; upfront flow compile makes one", names[0])}
			}
			stripped, err := flow.Strip(data, make([]byte, blob.ScratchSize(data)))
			if err != nil {
				return found{fmt.Errorf("%s: %w", names[0], err)}
			}
			if names[1] == "-" {
				return t.write(names[1], stripped) // and no sizes
			}
			if err := output(names[1], stripped); err != nil {
				return err
			}
			result := smaller{written{names[1], len(stripped)}, len(data)}
			return t.print(result, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%d bytes, of %d\n", result.Bytes, result.Was)
				return err
			})
		},
	}
}

// smaller is the output of flow strip.
type smaller struct {
	written
	Was int `json:"was"` // bytes
}

func drawCommand(t *tool) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:     "draw FILE",
		Short:   "draws a graph as SVG, or as DOT for Graphviz if -o ends in .dot",
		Long:    `Draws a graph as SVG, or as DOT for Graphviz if -o ends in .dot.`,
		Example: "  upfront flow draw door.json -o door.svg\n  upfront flow draw door.json -o door.dot",
		Args:    takes(1, 1),
		RunE: func(_ *cobra.Command, names []string) error {
			graph, err := read(names[0])
			if err != nil {
				return err
			}
			draw := view.SVG
			if filepath.Ext(out) == ".dot" {
				draw = view.DOT
			}
			var b bytes.Buffer
			if err := draw(&b, graph); err != nil {
				return err
			}
			if out == "" {
				return t.printText(b.String())
			}
			return t.write(out, b.Bytes())
		},
	}
	outFlag(c, &out, "file of the picture (default standard output)")
	return c
}

func flowDiffCommand(t *tool) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "lists the changes between two graphs by node, input, link and key",
		Long: `Lists the changes between two graphs by node, input, link and key: + added, -
gone, > moved, ~ changed. The order of a node's keys has no meaning. With -o it
draws both in one layout, as SVG. A blob has no notes, so those of a file aren't
compared with it.`,
		Example: "  upfront flow diff old.json door.json\n  upfront flow diff level.blob door.json -o doors.svg",
		Args:    takes(2, 2),
		RunE: func(_ *cobra.Command, names []string) error {
			var graphs [2]flow.Source
			var errs []error
			plain := false
			for i, name := range names {
				data, err := readFile(name)
				plain = plain || isBlob(data)
				if err == nil {
					graphs[i], err = read(name)
				}
				errs = append(errs, err)
			}
			if err := errors.Join(errs...); err != nil {
				return trouble(err) // 1 is the code of a difference
			}
			v := versions{schema: merge.Graph, read: readFile}
			if plain {
				v.read = func(name string) ([]byte, error) {
					return source.Write(graphs[slices.Index(names, name)]), nil
				}
			}
			d, err := v.diff(names)
			if err != nil {
				return err
			}
			return t.diffResult(d, out, func(w io.Writer) error { return view.Diff(w, graphs[0], graphs[1]) })
		},
	}
	outFlag(c, &out, "file of the picture, SVG")
	return c
}

func exportCommand(t *tool) *cobra.Command {
	return &cobra.Command{
		Use:   "export FILE",
		Short: "writes a blob as JSON that compiles to the same bytes",
		Long: `Writes a blob as JSON that compiles to the same bytes. The output is one object,
with or without --json.`,
		Example: "  upfront flow export door.blob > door.json",
		Args:    takes(1, 1),
		RunE: func(_ *cobra.Command, names []string) error {
			graph, err := read(names[0])
			if err != nil {
				return err
			}
			_, err = t.out().Write(source.Write(graph))
			return err
		},
	}
}

func traceCommand(t *tool) *cobra.Command {
	var host, event string
	var values map[string]string
	var key int32
	var ticks, steps int
	c := &cobra.Command{
		Use:   "trace FILE",
		Short: "shows the effect of an event, node by node, without actions",
		Long: `Shows the effect of an event, node by node, and of the ticks after it. Actions
do nothing here.`,
		Example: "  upfront flow trace door.json -e line.used -k 12 -v keys=1",
		Args:    takes(1, 1),
		RunE: func(_ *cobra.Command, names []string) error {
			g, err := open(names[0], host, guess)
			if err != nil {
				return err
			}
			given, err := g.values(event, values)
			if err != nil {
				return err
			}
			var b strings.Builder
			err = g.trace(&b, steps, ticks, func(r *flow.Runner, level *flow.Graph, i flow.Instance) error {
				return r.FireNamed(level, i, event, key, given...)
			})
			if b.Len() == 0 {
				return found{err} // nothing happened, or the graph can't be loaded
			}
			if t.json && err != nil {
				return errors.Join(t.printJSON(text{b.String(), err.Error()}), foundBy(err))
			}
			return errors.Join(t.printText(b.String()), foundBy(err))
		},
	}
	hostFlag(c, &host)
	c.Flags().StringVarP(&event, "event", "e", "", "the event")
	c.Flags().Int32VarP(&key, "key", "k", 0, "key of the event: the number of an object in the level")
	c.Flags().StringToStringVarP(&values, "value", "v", nil, "a value of the event, as keys=1")
	c.Flags().IntVarP(&ticks, "ticks", "t", 1000, "number of ticks after the event, for delays and timers")
	c.Flags().IntVar(&steps, "steps", 1000, "most steps of an event")
	_ = c.MarkFlagRequired("event") // the flag exists
	return c
}

func hostFlag(c *cobra.Command, host *string) {
	c.Flags().StringVar(host, "host", "", "file of the game's vocabulary, which the game prints as JSON")
}

type graph struct {
	name       string
	data       []byte
	source     flow.Source
	vocabulary flow.Vocabulary
	report     flow.Report
}

// The values of open's parameter guessing, for a graph without a vocabulary.
const (
	demand = false
	guess  = true
)

// open reads a graph, and compiles it with the vocabulary of the host, if host isn't empty.
func open(name, host string, guessing bool) (*graph, error) {
	data, err := readFile(name)
	if err != nil {
		return nil, err
	}
	g := &graph{name: name}
	if isBlob(data) {
		if g.source, g.vocabulary, err = decompile(name, data); err != nil {
			return nil, found{err}
		}
		data = source.Write(g.source) // the report and another host need JSON
	} else if host == "" && !guessing {
		return nil, errors.New("--host is missing: a blob needs the types of the game's events and actions")
	} else {
		g.source, _ = source.Read(name, data) // Compile reports the errors
		g.vocabulary = source.Guess(g.source)
	}
	if host != "" {
		text, err := readFile(host)
		if err != nil {
			return nil, err
		}
		if g.vocabulary, err = source.ReadVocabulary(host, text); err != nil {
			return nil, found{err}
		}
	}
	if g.data, g.report, err = source.Compile(name, data, g.vocabulary); err != nil {
		return nil, found{err}
	}
	return g, nil
}

func read(name string) (flow.Source, error) {
	data, err := readFile(name)
	if err != nil {
		return flow.Source{}, err
	}
	if isBlob(data) {
		graph, _, err := decompile(name, data)
		return graph, foundBy(err)
	}
	graph, err := source.Read(name, data)
	return graph, foundBy(err)
}

func readFile(name string) ([]byte, error) {
	return jsonfile.ReadFile(name, source.FileMax, "larger than 16MiB, the most of a graph")
}

func isBlob(data []byte) bool { return bytes.HasPrefix(data, []byte("BLB1")) }

func decompile(name string, data []byte) (flow.Source, flow.Vocabulary, error) {
	graph, vocabulary, err := flow.Decompile(data, make([]byte, blob.ScratchSize(data)))
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return graph, vocabulary, err
}

// graphSizes are the sizes of a graph, in bytes.
type graphSizes struct {
	Nodes   []nodeSize `json:"nodes"`
	Values  int        `json:"values"`  // of variables
	Names   int        `json:"names"`   // names and tables
	Static  int        `json:"static"`  // the whole blob
	Dynamic int        `json:"dynamic"` // each instance
}

// nodeSize is a flow.NodeSize in JSON.
type nodeSize struct {
	Type    string `json:"type"`
	Nodes   int    `json:"nodes"`
	Static  int    `json:"static"`
	Dynamic int    `json:"dynamic"`
}

func (g *graph) sizes() graphSizes {
	r := g.report
	var nodes []nodeSize
	for _, n := range r.Nodes {
		nodes = append(nodes, nodeSize(n))
	}
	return graphSizes{nodes, r.Values, r.Blob - r.Static, r.Blob, r.Data}
}

func (g graphSizes) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "nodes\ttype\tstatic bytes\tdynamic bytes\t")
	nodes := 0
	for _, s := range g.Nodes {
		nodes += s.Nodes
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t\n", s.Nodes, s.Type, s.Static, s.Dynamic)
	}
	fmt.Fprintf(w, "\tvariables\t\t%d\t\n", g.Values)
	fmt.Fprintf(w, "\tnames and tables\t%d\t\t\n", g.Names)
	fmt.Fprintf(w, "%d\tall\t%d\t%d\t\n", nodes, g.Static, g.Dynamic)
	return w.Flush()
}

// values returns the values of an event, in the order of the vocabulary.
func (g *graph) values(event string, given map[string]string) (list []any, err error) {
	for _, s := range g.vocabulary.Events {
		if s.Name != event {
			continue
		}
		for _, p := range s.Parameters {
			text, ok := given[p.Name]
			delete(given, p.Name)
			var value any
			switch {
			case !ok:
			case p.Type == flow.Bool:
				value, err = strconv.ParseBool(text)
			default:
				value, err = strconv.ParseFloat(text, 64)
			}
			if err != nil {
				return nil, fmt.Errorf("--value %s=%s: must be a %v", p.Name, text, p.Type)
			}
			list = append(list, value)
		}
		for name := range given {
			return nil, fmt.Errorf("--value %s: event %q has no such value", name, event)
		}
		return list, nil
	}
	var names []string
	for _, s := range g.vocabulary.Events {
		names = append(names, jsonfile.Echo(s.Name))
	}
	return nil, fmt.Errorf("no event %q; the events are: %s", event, strings.Join(names, ", "))
}

// trace loads the graph, fires the event, plays the ticks, and prints the steps of both. It fails
// if the event ran no node.
func (g *graph) trace(w io.Writer, steps, ticks int, fire func(*flow.Runner, *flow.Graph, flow.Instance) error) error {
	host, err := flow.HostOf(g.vocabulary)
	if err != nil {
		return err
	}
	scratch := make([]byte, blob.ScratchSize(g.data))
	size, err := flow.Size(g.data, scratch, 1)
	if err != nil {
		return err
	}
	plan := budget.Plan{Name: "trace",
		Regions: []budget.RegionPlan{{Name: "level", Size: uint64(size) + 64*uint64(steps) + budget.MiB}}}
	b, err := budget.Open(plan)
	if err != nil {
		return err
	}
	defer b.Close()
	_, err = budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*struct{}, error) {
		level, err := host.Load(s, g.data, scratch)
		if err != nil {
			return nil, err
		}
		level.Instances(1)
		instance, runner, trace := level.New(), host.NewRunner(s, new(struct{}), steps), view.NewTrace(w)
		heading := ""
		ran := false
		runner.Trace(func(s flow.Step) {
			ran = true
			if heading != "" {
				fmt.Fprintln(w, heading)
				heading = ""
			}
			trace.Step(s)
		})
		runner.Begin()
		defer runner.End()
		err = errors.Join(fire(runner, level, instance), trace.Done())
		if !ran && err == nil {
			return nil, errors.New("nothing happens: no node has this event with this key")
		}
		for tick := 1; tick <= ticks && err == nil; tick++ {
			heading = fmt.Sprintf("\ntick %d", tick)
			err = errors.Join(runner.Tick(level), trace.Done())
		}
		return nil, err
	})
	return err
}

package view

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/platform/jsonfile"
	"github.com/upfront-mem/upfront/scope/flow"
)

// Trace prints each node of a run as text, with the inputs when the node began and the variables of
// its instance that the node changed.
//
//	trace := view.NewTrace(os.Stderr)
//	runner.Trace(trace.Step)
//	err := used.Fire(runner, level, door, 12, Used{Keys: 1})
//	err = trace.Done() // after each Fire and Tick
//
// Each step allocates on the Go heap, so use a Trace only in tools and to find errors.
type Trace struct {
	w       io.Writer
	err     error
	sources map[*flow.Graph]flow.Source
	last    *flow.Step
	before  []any // variables before the last step
	count   int
}

// NewTrace makes a trace that writes to w.
func NewTrace(w io.Writer) *Trace { return &Trace{w: w, sources: map[*flow.Graph]flow.Source{}} }

// Step prints the changes of the last node, and the node that is about to run. It is for
// [flow.Runner.Trace].
func (t *Trace) Step(s flow.Step) {
	t.changes()
	source, known := t.sources[s.Graph]
	if !known {
		source = s.Graph.Source()
		t.sources[s.Graph] = source
	}
	if t.last == nil || t.last.Graph != s.Graph || t.last.Instance != s.Instance {
		t.print("in graph %q\n", oneLine(source.Name))
	}
	t.count++
	node := source.Nodes[s.Node]
	t.print("%4d  %s\n", t.count, t.nodeText(s, source, node))
	t.last, t.before = &s, t.values(s)
}

// Done ends a run: it prints the changes of the last node. It returns the writer's first error.
func (t *Trace) Done() error {
	t.changes()
	t.last, t.count = nil, 0
	return t.err
}

func (t *Trace) print(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format, args...)
	}
}

// values returns the variables of the step's instance; none if it was freed.
func (t *Trace) values(s flow.Step) (list []any) {
	if s.Graph.Live(s.Instance) {
		for i := range t.sources[s.Graph].Variables {
			list = append(list, s.Graph.Value(s.Instance, i))
		}
	}
	return list
}

func (t *Trace) changes() {
	if t.last == nil {
		return
	}
	for i, value := range t.values(*t.last) {
		if i < len(t.before) && value != t.before[i] {
			t.print("          %s = %s, was %s\n", oneLine(t.sources[t.last.Graph].Variables[i].Name),
				fmt.Sprint(value), fmt.Sprint(t.before[i]))
		}
	}
}

// nodeText returns a node with its port and its present inputs.
func (t *Trace) nodeText(s flow.Step, source flow.Source, n flow.Node) string {
	text := oneLine(n.Name)
	if port := s.PortName(); port != "" {
		text += " → " + port
	}
	text += ": " + jsonfile.Printable(whatText(n))
	if t.count == 1 && n.Type != "event" {
		text += ", whose time has come"
	}
	now := func(variable string) string {
		i := slices.IndexFunc(source.Variables, func(v flow.Variable) bool { return v.Name == variable })
		return oneLine(variable) + " = " + fmt.Sprint(s.Graph.Value(s.Instance, i))
	}
	var parts []string
	for _, in := range n.In {
		if in.Variable != "" {
			parts = append(parts, jsonfile.Printable(in.Name)+" "+now(in.Variable))
		} else {
			parts = append(parts, jsonfile.Printable(in.Name)+" "+fmt.Sprint(in.Constant))
		}
	}
	if n.Type == "event" { // its outputs were written before its step
		for _, out := range n.Out {
			parts = append(parts, jsonfile.Printable(out.Name)+" → "+now(out.Variable))
		}
	}
	if parts != nil {
		text += "; " + strings.Join(parts, ", ")
	}
	return text
}

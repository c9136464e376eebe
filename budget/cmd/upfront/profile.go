package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/with/pprof"
	"github.com/upfront-mem/upfront/platform/jsonfile"
)

func newProfileCommand(t *tool) *cobra.Command {
	var out string
	var top int
	c := &cobra.Command{
		Use:   "profile URL|REPORT|PROFILE",
		Short: "lists the users of memory, or writes a profile for go tool pprof",
		Long: `Lists the users of a budget's memory: the bytes in use now by region, scope and
label and, for a checked build, by line of code. Slots of a region count
together. A second table has the peaks of labels and scopes, each at its own
time; for slots, the highest of one slot. The argument is the URL of a running
budget's live page or of its report.json, or a report file. With -o it writes a
profile for go tool pprof instead.

The argument may also be a profile of C's heap: the URL of /debug/pprof/cmalloc,
or a file of malloc.WriteProfile. Then it lists the lines of Go that have most
of the heap, and the functions of C that they called. With -o it keeps the
profile in a file.`,
		Example: `  upfront profile http://127.0.0.1:8080/
  upfront profile report.json -o game.pb.gz && go tool pprof -top game.pb.gz
  upfront profile http://127.0.0.1:8080/debug/pprof/cmalloc`,
		Args: takes(1, 1),
		RunE: func(_ *cobra.Command, sources []string) error {
			if top < 1 {
				return fmt.Errorf("--top %d: must be at least 1", top)
			}
			data, err := t.read(sources[0])
			if err != nil {
				return err
			}
			if p := profileOfC(data); p != nil {
				if out != "" {
					return t.draw(out, "", p.Write)
				}
				u := usersOf(p, top)
				return t.print(u, func(w io.Writer) error { return t.users(w, u) })
			}
			r, err := parseReport(named(sources[0]), data)
			if err != nil {
				return err
			}
			p, err := pprof.Profile(r)
			if err != nil {
				return found{fmt.Errorf("%s: %s", named(sources[0]), echoWords(err.Error()))}
			}
			if out != "" {
				return t.draw(out, "", p.Write)
			}
			e := eatersOf(r, p, top)
			return t.print(e, func(w io.Writer) error { return t.eat(w, e) })
		},
	}
	outFlag(c, &out, "file of the profile")
	c.Flags().IntVar(&top, "top", 20, "most lines of a table")
	return c
}

// eaters is the output of profile: users of memory, the largest first.
type eaters struct {
	Budget string  `json:"budget"`
	Size   uint64  `json:"size"`
	InUse  uint64  `json:"in_use"`
	Now    []eater `json:"now"`
	Peaks  []eater `json:"peaks"`
	top    int
}

type eater struct {
	Region  string `json:"region"`
	Scope   string `json:"scope,omitempty"`
	Label   string `json:"label,omitempty"`
	Made    string `json:"made,omitempty"` // function and file:line, of a checked build
	Bytes   uint64 `json:"bytes"`
	Objects uint64 `json:"objects,omitempty"`
}

// eatersOf sums up a profile by user; the slots of a region count together. Peaks may be of
// different moments, so a user has the highest of them.
func eatersOf(r budget.Report, p *profile.Profile, top int) eaters {
	now, peaks := sums{}, sums{}
	for _, s := range p.Sample {
		for i, t := range p.SampleType {
			e, value := eaterOf(s), uint64(s.Value[i])
			switch t.Type {
			case "inuse_space":
				now.add(e, value, 0)
			case "inuse_objects":
				now.add(e, 0, value)
			case "labels_peak_space", "scopes_peak_space":
				peaks.raise(e, value)
			}
		}
	}
	e := eaters{Budget: r.Name, Size: r.Size, Now: now.sorted(), Peaks: peaks.sorted(), top: top}
	for _, x := range e.Now {
		e.InUse += x.Bytes
	}
	return e
}

func eaterOf(s *profile.Sample) eater {
	tag := func(key string) string { return append(s.Label[key], "")[0] }
	e := eater{Region: tag("region"), Scope: tag("scope"), Label: tag("label")}
	if leaf := s.Location[0].Line[0]; leaf.Line != 0 {
		e.Made = fmt.Sprintf("%s %s:%d", leaf.Function.Name, leaf.Function.Filename, leaf.Line)
	}
	return e
}

// inShort returns a line that allocated memory, in short: "load.go:31 main.load".
func inShort(made string) string {
	function, place, _ := strings.Cut(made, " ")
	after := func(text string) string { return text[strings.LastIndexByte(text, '/')+1:] }
	return strings.TrimSpace(after(place) + " " + after(function))
}

// sums has the bytes and objects of each user.
type sums map[eater]eater

func (s sums) add(who eater, bytes, objects uint64) {
	if bytes|objects == 0 {
		return
	}
	sum := s[who]
	who.Bytes, who.Objects = sum.Bytes+bytes, sum.Objects+objects
	key := who
	key.Bytes, key.Objects = 0, 0
	s[key] = who
}

func (s sums) raise(who eater, peak uint64) {
	s.add(who, peak-min(peak, s[who].Bytes), 0)
}

func (s sums) sorted() []eater {
	list := []eater{}
	for _, e := range s {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b eater) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Region, b.Region), cmp.Compare(a.Scope, b.Scope),
			cmp.Compare(a.Label, b.Label), cmp.Compare(a.Made, b.Made))
	})
	return list
}

// eat writes the text of profile.
func (t *tool) eat(w io.Writer, e eaters) error {
	fmt.Fprintf(w, "budget %s: %s in use of %s\n", jsonfile.Echo(e.Budget), budget.SizeText(e.InUse),
		budget.SizeText(e.Size))
	if err := t.eaters(w, "in use", e.InUse, e.Now, e.top); err != nil {
		return err
	}
	return t.eaters(w, "most in one", 0, e.Peaks, e.top)
}

// eaters writes a table. Shares are of total. If total is 0, the lines overlap and have no shares.
func (t *tool) eaters(w io.Writer, title string, total uint64, list []eater, top int) error {
	if len(list) == 0 {
		return nil
	}
	made := ""
	if slices.ContainsFunc(list, func(e eater) bool { return e.Made != "" }) {
		made = "made at"
	}
	rows := [][]cell{{right(title), right(""), left("region"), left("scope"), left("label"), left(made)}}
	rows = listed(rows, list, top, total, func(e eater) (uint64, []cell) {
		return e.Bytes, []cell{echoed(e.Region), echoed(e.Scope), echoed(e.Label), echoed(inShort(e.Made))}
	})
	fmt.Fprintln(w)
	return t.table(w, rows)
}

// listed adds a row for each of the first `top` users, with its share of total, and one for the
// others.
func listed[T any](rows [][]cell, list []T, top int, total uint64, row func(T) (uint64, []cell)) [][]cell {
	rest, more := uint64(0), 0
	for i, one := range list {
		bytes, cells := row(one)
		if i >= top {
			rest, more = rest+bytes, more+1
			continue
		}
		rows = append(rows, append([]cell{right(budget.SizeText(bytes)), right(share(bytes, total))}, cells...))
	}
	if more != 0 {
		sum := ""
		if total != 0 {
			sum = budget.SizeText(rest)
		}
		rows = append(rows, []cell{right(sum), right(share(rest, total)),
			{text: fmt.Sprintf("%d more", more), colour: faint}})
	}
	return rows
}

func share(n, total uint64) string {
	if total == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", float64(n)/float64(total)*100)
}

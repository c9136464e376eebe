package record

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/internal/seam"
	"github.com/upfront-mem/upfront/platform/jsonfile"
	"github.com/upfront-mem/upfront/scope/stack"
)

var (
	tableBytes = seam.TableBytes.(func(budget.Plan) (uint64, error))
	dry        = seam.Dry.(func(budget.Plan) (*budget.Budget, error))
	report     = seam.DryReport.(func(*budget.Budget) budget.Report)
	widen      = seam.Widen.(func(*budget.Plan, budget.Plan) error)
	measureDry = seam.MeasureDry.(func(budget.Plan, func(*budget.Budget) error) (budget.Report, error))
)

// Played is the progress of a replay.
type Played struct {
	Events uint64 `json:"events"`
	Marks  int    `json:"marks"`
	Mark   string `json:"mark,omitempty"` // the last mark
	Whole  bool   `json:"whole"`          // the recording ends with a Close
}

// Error is the error of a replay: a size or limit was too small, or an arena that the program used
// isn't in the plan.
type Error struct {
	Played
	Scopes []string // the open scopes of the arena, the outermost first
	// in recordings of checked builds, the calls that led to the allocation: function and
	// file:line, the innermost first
	Made []string
	err  error
}

// Error returns the error in one line, and further lines with the calls of Made.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Mark != "" {
		fmt.Fprintf(&b, "after mark %q, ", e.Mark)
	}
	fmt.Fprintf(&b, "event %d", e.Events)
	if len(e.Scopes) > 0 {
		fmt.Fprintf(&b, ", in scope %s", quoted(e.Scopes))
	}
	fmt.Fprintf(&b, ": %v", e.err)
	if len(e.Made) > 0 {
		b.WriteString("\n\tasked at:\n\t\t" + strings.Join(e.Made, "\n\t\t"))
	}
	return b.String()
}

// Unwrap returns a full error with the key to raise, or an error for a missing region.
func (e *Error) Unwrap() error { return e.err }

func quoted(names []string) string {
	var list []string
	for _, name := range names {
		list = append(list, fmt.Sprintf("%q", name))
	}
	return strings.Join(list, " > ")
}

// ErrMalformed is in the chain of each error for a file that is damaged or isn't a recording.
var ErrMalformed = errors.New("no recording")

// Bounds for files from outside.
const (
	planMax   = 1 << 22 // bytes of JSON
	arenasMax = 1 << 16 // more than a budget has
)

// Plan returns the plan in which a recording was made, with defaults filled in. The error wraps
// ErrMalformed if the file isn't a recording, or if the plan's tables take more than 1 GiB (with
// the usual limits, 19,000 arenas). So opening the plan takes at most 1 GiB in addition to the
// plan's sizes.
func Plan(r io.Reader) (budget.Plan, error) {
	plan, err := readPlan(bufio.NewReader(r))
	if err != nil {
		return plan, err
	}
	switch tables, err := tableBytes(plan); {
	case err != nil:
		return plan, fmt.Errorf("%w: its plan: %w", ErrMalformed, err)
	case tables > budget.GiB:
		return plan, fmt.Errorf("%w: the tables of its plan take %s", ErrMalformed, budget.SizeText(tables))
	}
	return plan, nil
}

func readPlan(r *bufio.Reader) (plan budget.Plan, err error) {
	first := make([]byte, len(FirstLine))
	if _, err := io.ReadFull(r, first); err != nil {
		return plan, fmt.Errorf("%w: its first line: %w", ErrMalformed, err)
	}
	if string(first) != FirstLine {
		return plan, fmt.Errorf("%w: its first line isn't %q", ErrMalformed, FirstLine)
	}
	text, err := readLine(r)
	if err != nil {
		return plan, err
	}
	if plan, err = budget.ParsePlan(text); err != nil {
		return plan, fmt.Errorf("%w: its plan: %w", ErrMalformed, err)
	}
	return plan, nil
}

func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case len(line) > planMax:
			return nil, fmt.Errorf("%w: its plan is longer than %d bytes", ErrMalformed, planMax)
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("%w: it ends in its plan: %w", ErrMalformed, err)
		}
	}
}

// Replay performs a recording on the tables of a budget with the plan, and returns the report at
// the end of the recording. Each MostOpen of the report has the program's value. If the plan has
// the program's sizes, each Peak also has the program's value, within the limits of the package
// doc. Replay returns one of these errors:
//
//   - an [*Error], if a size or limit was too small, or an arena that the program used isn't in the
//     plan
//   - an error that wraps ErrMalformed, if the recording is damaged or r fails
//   - the plan's error, if the plan is invalid
//
// The plan must contain at least the regions, slots, buffers, workers and scratch arenas that the
// program used. Replay allocates the plan's tables but no arena, so the plan may be one for a
// larger machine. Replay keeps at most 65,536 texts of the file, of at most 4 KiB each.
func Replay(plan budget.Plan, r io.Reader) (budget.Report, Played, error) {
	b, err := dry(plan)
	if err != nil {
		return budget.Report{}, Played{}, err
	}
	played, err := play(b, r)
	return report(b), played, err
}

func play(b *budget.Budget, r io.Reader) (Played, error) {
	p := player{r: bufio.NewReaderSize(r, bufSize), plan: b.Plan()}
	if _, err := readPlan(p.r); err != nil {
		return p.Played, err
	}
	err := p.match(stacks(b))
	if err == nil {
		err = p.all()
	}
	for _, a := range p.arenas {
		for a.Stack != nil && a.Depth() > 0 {
			_ = a.Play(stack.Event{Kind: stack.EventClose}) // never fails while a scope is open
		}
	}
	return p.Played, err
}

// Measure is [budget.Measure] for recordings in files. The report contains the highest peaks of all
// recordings. The report's Plan has the smallest sizes, to the byte, with which all recordings run;
// a part with temporaries may have up to 63 bytes more. Parts that no recording used stay as
// planned. The numbers of slots, buffers, workers and scratch arenas, the limits, and the C heap's
// size are the largest of the recordings' plans. A region's note names the recorded bytes. All
// other values are from the first plan. All plans must have the same regions in the same order.
// Measure measures limits only for regions with limits of their own in the report, such as regions
// with slots. Measure reads each file several times.
func Measure(names ...string) (budget.Report, error) {
	if len(names) == 0 {
		return budget.Report{}, errors.New("record: Measure: no recordings")
	}
	var plan budget.Plan
	err := each(names, func(r io.Reader) error {
		other, err := Plan(r)
		if err == nil && plan.Name == "" {
			plan = other
		} else if err == nil {
			err = widen(&plan, other)
		}
		return err
	})
	if err != nil {
		return budget.Report{}, err
	}
	return measureDry(plan, func(b *budget.Budget) error {
		return each(names, func(r io.Reader) error {
			_, err := play(b, r)
			return err
		})
	})
}

func each(names []string, fn func(io.Reader) error) error {
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		if err := errors.Join(fn(file), file.Close()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

type player struct {
	Played
	r      *bufio.Reader
	plan   budget.Plan
	arenas []arena // by their number in the recording
	texts  []string
}

type arena struct {
	name         string
	*stack.Stack // nil if the plan has no such arena
}

func (a arena) openScopes() (names []string) {
	for i := range a.Depth() {
		_, name, _ := a.Opened(i)
		names = append(names, name)
	}
	return names
}

func (p *player) match(stacks []*stack.Stack) error {
	by := map[string]*stack.Stack{}
	for _, st := range stacks {
		by[st.Arena] = st
	}
	count, err := p.number()
	if err != nil {
		return err
	}
	if count > arenasMax {
		return p.malformed("%d arenas", count)
	}
	for range count {
		name, err := p.text()
		if err != nil {
			return err
		}
		p.arenas = append(p.arenas, arena{name, by[name]})
	}
	return nil
}

func (p *player) all() error {
	for {
		if _, err := p.r.Peek(1); errors.Is(err, io.EOF) {
			return nil // the program didn't reach Close
		}
		number, err := p.number()
		if err != nil {
			return err
		}
		kind, index := number%kinds, number/kinds
		switch kind {
		case kindEnd:
			p.Whole = true
			return p.atEnd()
		case kindMark:
			p.Marks++
			if p.Mark, err = p.text(); err != nil {
				return err
			}
			continue
		}
		p.Events++
		if index >= uint64(len(p.arenas)) {
			return p.malformed("arena %d of %d", index, len(p.arenas))
		}
		if err := p.event(p.arenas[index], kind); err != nil {
			return err
		}
	}
}

func (p *player) atEnd() error {
	if _, err := p.r.Peek(1); !errors.Is(err, io.EOF) {
		return p.malformed("more after its end")
	}
	return nil
}

func (p *player) event(a arena, kind uint64) (err error) {
	e, made := stack.Event{Kind: stack.EventKind(kind)}, ""
	switch e.Kind {
	case stack.EventOpen:
		e.Name, err = p.text()
	case stack.EventClose, stack.EventTempEnd:
	case kindMade:
		e.Kind = stack.EventGrow
		if e.Size, err = p.number(); err == nil {
			made, err = p.text()
		}
	default:
		e.Size, err = p.number()
	}
	if err != nil {
		return err
	}
	if a.Stack == nil {
		return &Error{Played: p.Played, err: missing(p.plan, a.name)}
	}
	switch err := a.Play(e); {
	case errors.Is(err, budget.ErrFull):
		failed := &Error{Played: p.Played, Scopes: a.openScopes(), err: err}
		if made != "" {
			failed.Made = strings.Split(jsonfile.Printable(made, '\n'), "\n")
		}
		return failed
	case err != nil:
		return p.malformed("%w", err)
	}
	return nil
}

func (p *player) malformed(format string, args ...any) error {
	return fmt.Errorf("%w: event %d: %w", ErrMalformed, p.Events, fmt.Errorf(format, args...))
}

func (p *player) number() (uint64, error) {
	n, err := binary.ReadUvarint(p.r)
	if err != nil {
		return 0, p.malformed("%w", err)
	}
	return n, nil
}

func (p *player) text() (string, error) {
	n, err := p.number()
	switch {
	case err != nil:
		return "", err
	case n < uint64(len(p.texts)):
		return p.texts[n], nil
	case n > uint64(len(p.texts)):
		return "", p.malformed("text %d of %d", n, len(p.texts))
	}
	size, err := p.number()
	if err != nil {
		return "", err
	}
	if size > textMax {
		return "", p.malformed("a text of %d bytes", size)
	}
	bytes := make([]byte, size)
	if _, err := io.ReadFull(p.r, bytes); err != nil {
		return "", p.malformed("%w", err)
	}
	text := string(bytes)
	if len(p.texts) < textsMax {
		p.texts = append(p.texts, text)
	}
	return text, nil
}

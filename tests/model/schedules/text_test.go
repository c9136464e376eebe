package schedules_test

import (
	"fmt"
	"slices"
	"strings"
)

func (s step) String() string { return routineNames[s.who] + " " + orderNames[s.do] }

// name returns the schedule, as UPFRONT_SCHEDULE has it.
func name(full bool, path []move) string {
	steps := make([]string, len(path))
	for i, m := range path {
		steps[i] = m.step.String()
	}
	return startNames[full] + ": " + strings.Join(steps, ", ")
}

// read is the reverse of name: it returns the path by the model.
func read(text string) (full bool, path []move, err error) {
	head, rest, _ := strings.Cut(text, ": ")
	if full = head == startNames[true]; !full && head != startNames[false] {
		return false, nil, fmt.Errorf("a schedule begins with %q or %q, not with %q", "empty: ", "full: ", head)
	}
	m := start(full)
	for _, word := range strings.Split(rest, ", ") {
		list := m.choices(most)
		i := slices.IndexFunc(list, func(s step) bool { return s.String() == word })
		if i < 0 {
			return false, nil, fmt.Errorf("after %q none can do %q; what can be done: %v", name(full, path), word, list)
		}
		next := m
		next.take(list[i])
		path = append(path, move{list[i], m, next, next.seen()})
		m = next
	}
	return full, path, nil
}

// tellAll returns a line for each step, with its result.
func tellAll(full bool, path []move) string {
	var text strings.Builder
	from := start(full)
	before := from.seen()
	for _, m := range path {
		fmt.Fprintf(&text, "\t%-22s %s\n", m.step, changes(before, m.expect, m.who, &m.after))
		before = m.expect
	}
	return text.String()
}

// changes returns the goroutine's place, and every other visible change. m knows why a goroutine is
// held; it may be nil.
func changes(before, after seen, who int8, m *model) string {
	var list []string
	for i, r := range after.routines {
		if i != int(who) && r == before.routines[i] {
			continue
		}
		switch at := r.at; {
		case at == idle:
			list = append(list, routineNames[i]+": "+resultNames[r.came])
		case m != nil:
			at = m.routines[i].at
			fallthrough
		default:
			list = append(list, routineNames[i]+" "+placeNames[at])
		}
	}
	for i, s := range after.contents {
		if s != before.contents[i] {
			list = append(list, fmt.Sprintf("load %d %s", i+1, stateNames[s]))
		}
	}
	if after.free != before.free {
		list = append(list, fmt.Sprintf("free slots: %d", after.free))
	}
	if after.told != before.told {
		list = append(list, "OnError is told")
	}
	return strings.Join(list, "; ")
}

// String returns the schedule with its results, as UPFRONT_SCHEDULE has it.
func (d *difference) String() string {
	last := len(d.path) - 1
	m := d.path[last]
	from := start(d.full)
	before := from.seen()
	if last > 0 {
		before = d.path[last-1].expect
	}
	text := fmt.Sprintf("UPFRONT_SCHEDULE='%s'\n%s\t%s\n\t\tthe model:  %s\n\t\tthe budget: %s\n", name(d.full, d.path),
		tellAll(d.full, d.path[:last]), m.step, changes(before, m.expect, m.who, &m.after),
		changes(before, d.found, m.who, nil))
	if d.lost {
		text += "\t\tit isn't where it could hear that\n"
	}
	if d.stuck != nil {
		text += fmt.Sprintf("\t\tthen, when all is over: %v\n", d.stuck)
	}
	for i, err := range d.errs {
		if err != nil {
			text += fmt.Sprintf("\t\t%s was told: %v\n", routineNames[i], err)
		}
	}
	return text
}

// String returns the counts as a table: the results of each operation, and their numbers.
func (c *counts) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d programs, %d schedules (of goroutines with names: %d), %d steps; what came of the "+
		"operations:\n",
		len(c.programs), c.schedules, c.named, c.steps)
	for do, came := range c.came {
		var list []string
		for r, n := range came {
			if n > 0 {
				list = append(list, fmt.Sprintf("%d %s", n, resultNames[r]))
			}
		}
		fmt.Fprintf(&text, "\t%-20s %s\n", orderNames[do], strings.Join(list, ", "))
	}
	return text.String()
}

// Command caches compares the byte cache of this library with other caches in Go, at the same
// resident memory. make bench ARGS='-works K' runs it and prints its figures as a table.
//
//	caches [-short] [-sizes 64,256] [-who upfront,otter]
//
// For each figure, the program starts itself with one cache and one work. The output has a line of
// JSON for each figure.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// asked is the resident memory of each cache. The least cache of fastcache takes 32 MiB and its
// index.
const asked = 40 << 20

// tries is the most runs in the search of a limit.
const tries = 6

// near is the deviation from asked that ends the search.
const near = 0.02

// equal is the ratio up to which two counts of hits are equal: concurrent caches differ from run to
// run.
const equal = 1.001

// task is the work of one process.
type task struct {
	Who        string
	Limit      int // in bytes; each cache has its own meaning of it
	Size       int // of a value
	Work       string
	Goroutines int
	Short      bool
	Counted    bool // the payload is counted
}

// result has the figures of one process.
type result struct {
	Hits        float64 // percent of all Gets
	Time        float64 // ns an operation
	Resident    float64 // bytes, without the program's own
	Payload     float64 // bytes of keys and values in the cache
	Garbage     float64 // bytes an operation
	Collections float64 // in a million operations
	Longest     float64 // us
}

// figure is a line of the output.
type figure struct {
	Work, Unit, Who string
	Value           float64
}

func main() {
	short := flag.Bool("short", false, "do a small part")
	sizes := flag.String("sizes", "64,256,4096", "the values' `sizes`, with commas")
	who := flag.String("who", strings.Join(names(), ","), "the `caches`, with commas")
	only := flag.String("only", "", "only works whose name has this `text`")
	child := flag.String("child", "", "do one `task`, and print its figures as JSON")
	flag.Parse()
	err := error(nil)
	if *child != "" {
		err = inside(*child)
	} else {
		err = compare(*short, strings.Split(*sizes, ","), strings.Split(*who, ","), *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "caches:", err)
		os.Exit(1)
	}
}

func inside(text string) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	r, err := t.do()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// as returns the task of a cache and a limit.
func (t task) as(who string, limit int) task {
	t.Who, t.Limit = who, limit
	return t
}

// run does the task in a process of its own.
func (t task) run() (r result, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	text, err := json.Marshal(t)
	if err != nil {
		return r, err
	}
	var said strings.Builder
	c := exec.Command(self, "-child", string(text))
	c.Env, c.Stderr = append(os.Environ(), "GOGC=100", "GOMEMLIMIT=off", "GODEBUG="), &said
	out, err := c.Output()
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w: %s", text, err, said.String())
	}
	return r, nil
}

func compare(short bool, sizes, who []string, only string) error {
	var t totals
	if short {
		sizes = []string{"4096"}
	}
	for _, text := range sizes {
		size, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("-sizes: %w", err)
		}
		start := time.Now()
		limits, err := t.search(who, size, short)
		if err != nil {
			return err
		}
		for _, row := range rowsOf(short) {
			if !strings.Contains(row.name, only) {
				continue
			}
			if err := t.row(who, limits, row, size, short); err != nil {
				return err
			}
		}
		fmt.Fprintf(os.Stderr, "values of %d bytes: %.1f s\n", size, time.Since(start).Seconds())
	}
	return t.print()
}

// totals collects the figures, and the ratios that have goals.
type totals struct {
	all     [figuresCount][]figure
	ratios  []figure // of a row and a goal
	largest float64  // resident of the library
}

// The figures of a row, in the order of the table.
const (
	hits = iota
	times
	resident
	garbage
	collections
	longest
	payload
	figuresCount
)

var units = [figuresCount][2]string{
	hits:        {"hits", "% of Gets"},
	times:       {"time", "ns an operation"},
	resident:    {"resident", "of the asked bytes"},
	garbage:     {"garbage", "bytes an operation"},
	collections: {"collections", "in a million operations"},
	longest:     {"longest", "us an operation"},
	payload:     {"keys and values", "of the resident bytes"},
}

func (t *totals) add(kind int, row, who string, value float64) {
	t.all[kind] = append(t.all[kind], figure{"K " + units[kind][0] + ", " + row, units[kind][1], who, value})
}

// search returns the limit of each cache: asked for the library, and for a peer the limit with
// which its resident bytes are nearest to those asked for, and not above them if that is possible.
func (t *totals) search(who []string, size int, short bool) (limits map[string]int, err error) {
	limits = map[string]int{}
	work := task{Size: size, Work: zipf10.name, Goroutines: 1, Short: short, Counted: true}
	empty, err := work.as(none, 0).run()
	if err != nil {
		return nil, err
	}
	for _, w := range who {
		most := tries
		if short {
			most = 2
		}
		if w == library {
			most = 1
		}
		limit, best := asked, result{}
		under, over := point{}, point{}
		for try := range most {
			r, err := work.as(w, limit).run()
			if err != nil {
				return nil, err
			}
			r.Resident -= empty.Resident
			if try == 0 || better(r.Resident, best.Resident) {
				limits[w], best = limit, r
			}
			fmt.Fprintf(os.Stderr, "%s, values of %d bytes: with a limit of %d bytes %.0f are resident\n",
				w, size, limit, r.Resident)
			if r.Resident >= asked*(1-near) && r.Resident <= asked*(1+near/2) {
				break
			}
			if now := (point{float64(limit), r.Resident}); r.Resident <= asked {
				under = now
			} else {
				over = now
			}
			limit = next(under, over, try)
		}
		t.add(payload, fmt.Sprintf("%d bytes", size), w, best.Payload/best.Resident)
	}
	return limits, nil
}

// point is a limit and the resident bytes of a run with it.
type point struct{ limit, resident float64 }

// next returns the limit to try after those below and above the asked bytes, if there is one: in
// proportion, between the two, and later in the middle, for caches that grow in steps.
func next(under, over point, try int) int {
	const wanted = asked * (1 - near/3)
	switch {
	case over.limit == 0:
		return int(under.limit * wanted / under.resident)
	case under.limit == 0:
		return int(over.limit * wanted / over.resident)
	case try > 2:
		return int(under.limit+over.limit) / 2
	}
	return int(under.limit + (over.limit-under.limit)*(wanted-under.resident)/(over.resident-under.resident))
}

// better reports whether resident bytes are nearer to those asked for. Fewer than asked are better
// than more.
func better(a, b float64) bool {
	const most = asked * (1 + near/2)
	if (a <= most) != (b <= most) {
		return a <= most
	}
	return max(a/asked, asked/a) < max(b/asked, asked/b)
}

// row runs a row's work with each cache.
func (t *totals) row(who []string, limits map[string]int, row row, size int, short bool) error {
	name := fmt.Sprintf("%d bytes, %s", size, row.name)
	work := task{Size: size, Work: row.work.name, Goroutines: row.goroutines, Short: short}
	who = append([]string{none}, who...)
	found, err := work.turns(row, who, limits)
	if err != nil {
		return err
	}
	for i, w := range who {
		r := &found[i]
		if w == none {
			if !row.onlySets {
				t.add(times, name, w, r.Time)
			}
			continue
		}
		r.Resident -= found[0].Resident
		if !row.work.onlySets {
			t.add(hits, name, w, r.Hits)
		}
		if row.work.name != hotSet.name { // the cache isn't full
			t.add(resident, name, w, r.Resident/asked)
		}
		t.add(times, name, w, r.Time)
		t.add(garbage, name, w, math.Round(10*r.Garbage)/10)
		t.add(collections, name, w, r.Collections)
		t.add(longest, name, w, r.Longest)
	}
	t.compare(row, name, who, found)
	return nil
}

// turns runs the work of a row with each cache in turn, several times if its time has a goal. The
// time of a cache is the least.
func (t task) turns(row row, who []string, limits map[string]int) (found []result, err error) {
	turns := 1
	if row.isSpeed() && !t.Short {
		turns = 2
	}
	for turn := range turns {
		for i, w := range who {
			r, err := t.as(w, limits[w]).run()
			if err != nil {
				return nil, err
			}
			if turn == 0 {
				found = append(found, r)
			}
			found[i].Time = min(found[i].Time, r.Time)
		}
	}
	return found, nil
}

// compare keeps the ratios of a row that have goals.
func (t *totals) compare(row row, name string, who []string, found []result) {
	ours := slices.Index(who, library)
	if ours < 0 {
		return
	}
	t.largest = max(t.largest, found[ours].Resident/asked)
	best, fastest := 0.0, 0.0
	for i, w := range who {
		if i == ours || w == none {
			continue
		}
		best = max(best, found[i].Hits)
		if bounded(w) && (fastest == 0 || found[i].Time < fastest) {
			fastest = found[i].Time
		}
	}
	if row.work.judged() {
		t.ratios = append(t.ratios, figure{Work: "hits", Who: name, Value: best / found[ours].Hits})
	}
	if row.work.isSpeed() && fastest > 0 {
		t.ratios = append(t.ratios, figure{Work: row.work.name, Who: name, Value: found[ours].Time / fastest})
	}
}

// print prints all figures. The first are those that have goals.
func (t *totals) print() error {
	list := []figure{{"K goal: resident, the most of all rows", "of the asked bytes", library, t.largest}}
	of := map[string][]float64{}
	for _, r := range t.ratios {
		of[r.Work] = append(of[r.Work], r.Value)
	}
	for _, work := range []string{"hits", hotSet.name, setting.name} {
		if values := of[work]; len(values) > 0 {
			list = append(list, figure{goals[work][0], goals[work][1], library, slices.Max(values)})
		}
	}
	lost := 0
	for _, value := range of["hits"] {
		if value > equal {
			lost++
		}
	}
	if n := len(of["hits"]); n > 0 {
		list = append(list, figure{"K goal: rows with fewer hits than the best peer", "of all rows", library,
			float64(lost) / float64(n)})
	}
	out := json.NewEncoder(os.Stdout)
	for _, f := range slices.Concat(append(slices.Clone(t.all[:]), list)...) {
		if err := out.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

// goals are the names and units of the ratios that have goals, by work.
var goals = map[string][2]string{
	"hits":       {"K goal: hits of the best peer, in the worst row", "of upfront's"},
	hotSet.name:  {"K goal: Get, of the fastest peer that bounds bytes, in the worst row", "of its time"},
	setting.name: {"K goal: Set, of the fastest peer that bounds bytes, in the worst row", "of its time"},
}

package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
)

//go:embed plan.json
var defaultPlan []byte

// snapshots is the least number of snapshots for which a level has space.
const snapshots = 8

// options holds the flags of frogpond without a command.
type options struct {
	game.Options
	bots                           int
	plan, report, durations        string
	timeline, pictures, record     string
	realtime, json, verbose, crash bool
	sweep, vocabulary, syncTest    bool
	flow                           string
	rollback                       int
	plant                          plant
	demo, playDemo, save, load     string // file names
}

// parseOptions parses the flags. It prints an error to stderr itself, as package flag does.
func parseOptions(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("frogpond", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.plan, "plan", "",
		"the memory plan, a JSON `file`; without it, the one in plan.json")
	wadFlag(f, &o.WADs)
	f.StringVar(&o.Maps, "maps", "all", "the maps to play, `names` with commas")
	f.IntVar(&o.Ticks, "ticks", 350, "ticks to play each map for, 35 a second of game time")
	f.IntVar(&o.Workers, "workers", 1, "goroutines that decide")
	f.IntVar(&o.bots, "bots", 8, "players on a map")
	f.Uint64Var(&o.Seed, "seed", 1, "the seed of everything random")
	f.BoolVar(&o.realtime, "realtime", false, "35 ticks a second, not as fast as possible")
	f.BoolVar(&o.json, "json", false, "print one JSON object and nothing else")
	f.BoolVar(&o.verbose, "v", false, "list each map, with the hash of its last state")
	f.StringVar(&o.Log, "log", os.DevNull, "append a log to a `file`")
	f.StringVar(&o.report, "report", "",
		"write the budget's last report to a `file`, as JSON; budget.Suggest makes a plan from it")
	f.StringVar(&o.durations, "durations", "",
		"write the time of each tick of the last map to a `file`: nanoseconds, a line each")
	f.StringVar(&o.timeline, "timeline", "",
		"write the use of each arena over time to a `file`, as JSON: timeline.Data")
	f.StringVar(&o.pictures, "pictures", "", "draw the budget into a `folder`, as SVG: its plan,"+
		" its use after the fullest map, and its use over time")
	f.BoolVar(&o.sweep, "sweep", false, "before each map, fire each of its special lines, and check"+
		" the effect with a second table")
	f.StringVar(&o.flow, "flow", "",
		"print the graph of a `map`'s specials, as JSON, and play nothing")
	f.BoolVar(&o.vocabulary, "vocabulary", false,
		"print which events and actions such a graph may have, and play nothing")
	f.IntVar(&o.rollback, "rollback", 0, "play each map again, with inputs up to"+
		" `n`-1 ticks late: go back, play again, and end in the same state")
	f.BoolVar(&o.syncTest, "synctest", false, "play each tick twice from the same state, and compare")
	f.Var(&o.plant, "plant",
		"with -synctest: put a `fault` into each tick: "+strings.Join(plants, ", "))
	f.StringVar(&o.record, "record", "", "record each map's use of the budget in a `file`:"+
		" upfront replay tries it in another plan, upfront plan suggest makes one of it")
	f.StringVar(&o.demo, "demo", "", "write the players' inputs of the last map to a `file`")
	f.StringVar(&o.playDemo, "playdemo", "", "play with the inputs in a `file` that -demo wrote for this map,"+
		" this seed and as many players, as far as it goes")
	f.StringVar(&o.save, "save", "",
		"write the state after the last tick of the last map to a `file`")
	f.StringVar(&o.load, "load", "",
		"start from the state of this map in a `file`, and go on up to -ticks")
	f.BoolVar(&o.crash, "crash", false, "crash in C on purpose, to show a crash report")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if err := o.check(f.Args()); err != nil {
		fmt.Fprintln(stderr, "frogpond:", err)
		return nil, err
	}
	o.Snapshots = max(snapshots, o.rollback)
	if len(o.WADs) == 0 {
		o.WADs = doom.InstalledWADs()
	}
	return o, nil
}

func wadFlag(f *flag.FlagSet, to *[]string) {
	f.Func("wad", "a WAD `file`, or "+doom.Builtin+"; may be repeated, or be a list with commas: of two "+
		"maps with one name the later file's is played (default: installed Freedoom, else "+doom.Builtin+")",
		func(v string) error { *to = append(*to, strings.Split(v, ",")...); return nil })
}

func (o *options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case o.Ticks < 0:
		return fmt.Errorf("-ticks %d: must not be negative", o.Ticks)
	case o.Workers < 1:
		return fmt.Errorf("-workers %d: at least 1", o.Workers)
	case o.rollback < 0 || o.rollback == 1:
		return fmt.Errorf("-rollback %d: 2 at least, or 0 for none", o.rollback)
	case o.rollback != 0 && (o.load != "" || o.syncTest):
		return errors.New("-rollback plays whole games: not with -load or -synctest")
	case o.demo != "" && o.load != "":
		return errors.New("-demo writes the inputs of whole games: not with -load")
	case o.plant != "" && !o.syncTest:
		return fmt.Errorf("-plant %s: needs -synctest, which finds it", o.plant)
	case o.bots < 0:
		return fmt.Errorf("-bots %d: must not be negative", o.bots)
	case o.bots == 0 && (o.rollback != 0 || o.demo != "" || o.playDemo != "" || o.plant != ""):
		return errors.New("-bots 0: -rollback, -demo, -playdemo and -plant need a player")
	}
	return nil
}

// readPlan returns the memory plan. It fails if the plan doesn't suit this program.
func (o *options) readPlan() (budget.Plan, error) {
	var plan budget.Plan
	var err error
	name := o.plan
	if name == "" {
		name = "plan.json"
		plan, err = budget.ParsePlan(defaultPlan)
	} else {
		plan, err = budget.ReadPlan(name)
	}
	if err != nil {
		return plan, err
	}
	var regions []string
	for _, r := range plan.Regions {
		regions = append(regions, r.Name)
	}
	if got := strings.Join(regions, ", "); got != "init, systems, level" {
		return plan, fmt.Errorf("%s: regions: are %q; this program needs init, systems, level", name, got)
	}
	if !plan.Regions[2].State {
		return plan, fmt.Errorf("%s: regions[2].state: is false; a level is copied, hashed and saved", name)
	}
	if plan.Frame.Buffers == 0 {
		return plan, fmt.Errorf("%s: frame.buffers: is 0; a tick keeps its commands in one", name)
	}
	if plan.Scratch.Workers < o.Workers {
		return plan, fmt.Errorf("%s: scratch.workers: is %d; -workers %d needs as many",
			name, plan.Scratch.Workers, o.Workers)
	}
	return plan, nil
}

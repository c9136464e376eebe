// Command mods plays frogpond's maps with frogs led by a WebAssembly module:
//
//	mods -mods testdata/shy.wasm
//
// The module has a memory of fixed size in the plan and a time limit for each tick. The game
// removes a module that misbehaves. The frogs then follow the game's own rules, and the module's
// memory is free again.
//
// A mod's memory isn't part of a room's state, so -rollback is refused. testdata/frog.h declares
// the data that a mod reads, and the choices that it makes.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
)

//go:embed plan.json
var plan []byte

// options holds the flags.
type options struct {
	game.Options
	file     string
	bots     int
	limit    time.Duration
	most     uint64
	rollback int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code: 0 for success, 1 for bad input, 2 for bad flags, 3 if a mod was thrown
// out.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil { // package flag has printed it
		return 2
	}
	played, err := o.play(ctx)
	for _, p := range played {
		fmt.Fprintln(stdout, p)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(stderr, "mods:", err)
		return 1
	}
	for _, p := range played {
		if p.thrownOut != nil {
			return 3
		}
	}
	return 0
}

// parse parses the flags. It prints an error to stderr itself, as package flag does.
func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{Options: game.Options{Log: os.DevNull, Workers: 1}}
	f := flag.NewFlagSet("mods", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.file, "mods", "", "the `file` of a WebAssembly module, which chooses for frogs")
	f.DurationVar(&o.limit, "limit", 20*time.Millisecond,
		"how long a mod may take of a tick's 28 ms")
	f.Uint64Var(&o.most, "most", 1<<20, "`bytes` that the memory of a mod may grow to")
	f.StringVar(&o.Maps, "maps", "all", "the maps to play, `names` with commas")
	f.IntVar(&o.Ticks, "ticks", 350, "ticks to play each map for, 35 a second of game time")
	f.IntVar(&o.bots, "bots", 8, "players on a map")
	f.Uint64Var(&o.Seed, "seed", 1, "the seed of everything random")
	f.IntVar(&o.rollback, "rollback", 0, "is refused: a mod's own memory can't be restored")
	f.Func("wad", "a WAD `file`, or "+doom.Builtin+"; may be a list with commas (default: installed "+
		"Freedoom, else "+doom.Builtin+")",
		func(v string) error { o.WADs = append(o.WADs, strings.Split(v, ",")...); return nil })
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if err := o.check(f.Args()); err != nil {
		fmt.Fprintln(stderr, "mods:", err)
		return nil, err
	}
	if len(o.WADs) == 0 {
		o.WADs = doom.InstalledWADs()
	}
	return o, nil
}

func (o *options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case o.rollback != 0:
		return errors.New("-rollback: not with -mods: a mod's own memory can't be restored")
	case o.file == "":
		return errors.New("-mods: the file of a mod is missing; frogpond plays without one")
	case o.Ticks < 0 || o.bots < 0 || o.limit <= 0:
		return fmt.Errorf("-ticks %d, -bots %d, -limit %v: must not be negative", o.Ticks, o.bots, o.limit)
	}
	return nil
}

// modMost is the largest size of a mod's file, in bytes.
const modMost = 16 << 20

// readMod reads a mod. It checks the size before it allocates.
func readMod(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	wasm, err := io.ReadAll(io.LimitReader(file, modMost+1))
	if err == nil && len(wasm) > modMost {
		err = fmt.Errorf("a mod has at most %d bytes", modMost)
	}
	return wasm, err
}

// play opens the budget, boots, plays every map, and unwinds.
func (o *options) play(ctx context.Context) (played []outcome, err error) {
	wasm, err := readMod(o.file)
	if err != nil {
		return nil, fmt.Errorf("-mods %s: %w", o.file, err)
	}
	parsed, err := budget.ParsePlan(plan)
	if err != nil {
		return nil, err
	}
	b, err := budget.Open(parsed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	s, err := game.Boot(ctx, o.Options, b)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	mods, err := openMods(ctx, b, o, wasm)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, mods.close()) }()
	for _, m := range s.Maps {
		p, err := mods.play(ctx, s, m)
		if err != nil {
			return played, fmt.Errorf("%s: %w", m.Name, err)
		}
		played = append(played, p)
	}
	return played, nil
}

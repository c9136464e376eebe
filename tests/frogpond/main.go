// Command frogpond is the inside of a game server, without graphics and, so far, without a network:
// seeded players walk the levels of Doom-format WAD files, and frogs appear around them, all within
// one fixed budget. It is the template for a server of your own: this file is the life of the
// memory. The files beside it are what the program takes and says; internal/game is the play, and
// internal/doom what reads a map. Who copies the folder replaces the path of their imports.
//
// Its state can be copied and put back, by package budget/save: -rollback 8 plays with inputs that
// come late, -synctest plays each tick twice, and -plant shows how a mistake in that is named; -save
// and -load are save games, -record and -replay the inputs of one. rollback.go is what a game needs
// that predicts, and internal/game/room.go how its state is laid out.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err := os.Stdout.Close(); err != nil { // what was printed may not have arrived
		fmt.Fprintln(os.Stderr, "frogpond:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// commands are what the program does beside playing by itself.
var commands = map[string]func(ctx context.Context, args []string, stdout, stderr io.Writer) int{
	"bots":  playBots,
	"watch": watchRoom,
}

// run is the program: 0 is well, 1 bad input, a file that could not be written, or a game that came
// to another state when it was played again; 2 bad flags, 3 some maps did not fit.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && commands[args[0]] != nil {
		return commands[args[0]](ctx, args[1:], stdout, stderr)
	}
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil { // already printed, with the usage
		return 2
	}
	plan, err := o.readPlan()
	if err != nil {
		fmt.Fprintln(stderr, "frogpond:", err)
		return 1
	}
	if o.flow != "" || o.vocabulary {
		if err := export(ctx, o, plan, stdout); err != nil {
			fmt.Fprintln(stderr, "frogpond:", err)
			return 1
		}
		return 0
	}
	result := newResult(o)
	if err := serve(ctx, o, plan, result, stderr); err != nil {
		fmt.Fprintln(stderr, "frogpond:", errors.Join(err, result.close))
		return 1
	}
	return result.print(stdout, stderr, o.json, o.verbose)
}

// parse reads a command's flags, and has what is wrong with them printed. It gives the code to exit
// with; -1: go on.
func parse(f *flag.FlagSet, args []string, check func() error) (code int) {
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil { // already printed, with the usage
		return 2
	}
	err := check()
	if f.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(f.Output(), "%s: %v\n", f.Name(), err)
		return 2
	}
	return -1
}

// serve opens the budget, boots, plays every map, and unwinds.
func serve(ctx context.Context, o *options, plan budget.Plan, result *Result, stderr io.Writer) (
	err error) {
	b, err := budget.Open(plan)
	if err != nil {
		return err
	}
	if o.crash {
		return crash(ctx, b) // it closes the budget
	}
	defer func() {
		if errors.Is(err, context.Canceled) {
			err = nil // somebody pressed Ctrl-C: that is a good end
		}
		result.finish(b) // closes what is open, newest first
	}()
	warmRuntime()
	s, err := game.Boot(ctx, o.Options, b)
	if err != nil {
		return err
	}
	defer s.Stop()
	err = s.Seal()
	for i := 0; i < len(s.Maps) && err == nil && ctx.Err() == nil; i++ {
		err = result.play(ctx, o, s, s.Maps[i], stderr)
		if i%10 == 9 && err == nil { // now and then the systems too, and with them the level
			result.close = cmp.Or(result.close, b.Region("systems").Rewind(context.WithoutCancel(ctx)))
			result.check(b)
			err = s.LoadSystems(ctx, o.Options)
		}
	}
	return err
}

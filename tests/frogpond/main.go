// Command frogpond is a game server without graphics: players walk the levels of Doom-format WAD
// files, and frogs appear around them, all within one fixed budget. It plays by itself, with
// seeded players; or, as `frogpond serve`, with who comes over UDP. README.md says what else it
// does. This file is the life of the memory. The files beside it are what the program takes and says;
// internal/game is the play, and internal/doom what reads a map. Command copy, two folders away, makes
// a module of your own of all of it.
//
// Its state can be copied and put back, by package budget/save: -rollback 8 plays with inputs that
// come late, -synctest plays each tick twice, and -plant shows how a mistake in that is named; -save
// and -load are save games, -demo and -playdemo the inputs of one. rollback.go is what a game needs
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
	"strings"
	"syscall"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go stopAtSignal(stop)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err := os.Stdout.Close(); err != nil { // what was printed may not have arrived
		fmt.Fprintln(os.Stderr, "frogpond:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// stopAtSignal unwinds at the first signal. The second ends the program at once; what comes in the
// same moment is the first, sent to a process and to its group.
func stopAtSignal(stop context.CancelFunc) {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, ends...)
	time.Sleep(time.Nanosecond) // its timer is made now
	<-signals
	stop()
	time.Sleep(300 * time.Millisecond)
	signal.Reset(ends...)
}

// commands are what frogpond does beside playing levels, by the first word of its arguments.
var commands = []command{
	{"bots", "play on a server from afar, or attack it", botsCommand},
	{"offline", "play the records of a server again, and print the hashes", offlineCommand},
	{"scores", "print the best of a file of scores", scoresCommand},
	{"serve", "let players play over UDP, many matches at a time", serveCommand},
	{"watch", "draw a room of a server in the terminal", watchCommand},
}

// run is the program: a command, or without one levels are played.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return runCommand(ctx, args[0], args[1:], stdout, stderr)
	}
	return playLevels(ctx, args, stdout, stderr)
}

// playLevels gives the exit code: 0 is well, 1 bad input, a file that could not be written, or a
// game that came to another state when it was played again; 2 bad flags, 3 some maps did not fit.
func playLevels(ctx context.Context, args []string, stdout, stderr io.Writer) int {
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
		if err := export(ctx, o, plan, stdout, stderr); err != nil {
			fmt.Fprintln(stderr, "frogpond:", err)
			return 1
		}
		return 0
	}
	result := newResult(o)
	if err := playAll(ctx, o, plan, result, stderr); err != nil {
		fmt.Fprintln(stderr, "frogpond:", errors.Join(err, result.close))
		return 1
	}
	return result.print(stdout, stderr, o.json, o.verbose)
}

// sayReplaced says which files' maps are played instead of earlier files' of the same name.
func sayReplaced(stderr io.Writer, maps []doom.Map) {
	for _, line := range doom.Replaced(maps) {
		fmt.Fprintln(stderr, "frogpond:", line)
	}
}

// playAll opens the budget, boots, plays every map, and unwinds.
func playAll(ctx context.Context, o *options, plan budget.Plan, result *Result, stderr io.Writer) (
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
	if err := result.sample(b); err != nil {
		return err
	}
	warmRuntime()
	s, err := game.Boot(ctx, o.Options, b)
	if err != nil {
		return err
	}
	defer s.Stop()
	sayReplaced(stderr, s.Maps)
	s.Timeline = result.timeline
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

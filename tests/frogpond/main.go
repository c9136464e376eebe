// Command frogpond is a game server without graphics: players walk the levels of Doom-format WAD
// files, and frogs appear around them. The game plays in one fixed budget. Frogpond plays by
// itself, with seeded players, or serves players over UDP as `frogpond serve`. `frogpond help`
// lists all commands.
//
// This file shows the life of the memory. The files next to it have the flags, the other commands
// and the output. Package internal/game plays, and package internal/doom reads maps. Command
// tests/copy makes a module of your own from the whole program.
//
// Package budget/save copies the state and restores it. -rollback 8 plays with late inputs.
// -synctest plays each tick twice and compares the states, and -plant shows how this test names a
// mistake. -save and -load write and read save games. -demo and -playdemo record and replay inputs.
// rollback.go shows how a game predicts, and internal/game/room.go how the state is laid out.
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
	if err := os.Stdout.Close(); err != nil { // the last output may fail only now
		fmt.Fprintln(os.Stderr, "frogpond:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// stopAtSignal calls stop at the first signal, which unwinds the program; a second signal ends it
// at once. A signal within 300 ms of the first counts as the first, because a terminal sends it to
// the process and to its group.
func stopAtSignal(stop context.CancelFunc) {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, ends...)
	time.Sleep(time.Nanosecond) // makes the timer of the later Sleep now, before play
	<-signals
	stop()
	time.Sleep(300 * time.Millisecond)
	signal.Reset(ends...)
}

// commands are the commands of frogpond, by the first word of its arguments. Without a command,
// frogpond plays levels.
var commands = []command{
	{"bots", "play on a server from afar, or attack it", botsCommand},
	{"offline", "play the records of a server again, and print the hashes", offlineCommand},
	{"scores", "print the best of a file of scores", scoresCommand},
	{"serve", "let players play over UDP, many matches at a time", serveCommand},
	{"watch", "draw a room of a server in the terminal", watchCommand},
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return runCommand(ctx, args[0], args[1:], stdout, stderr)
	}
	return playLevels(ctx, args, stdout, stderr)
}

// playLevels plays levels and returns the exit code: 0 for success, 2 for bad flags, 3 if some maps
// didn't fit. It is 1 for bad input, a file that can't be written, or a state that differs when a
// game is played again.
func playLevels(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil { // package flag has printed it, with the usage
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

// sayReplaced names each map that a later file replaces.
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
			err = nil // Ctrl-C is a good end
		}
		result.finish(b) // closes the newest first
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
		if i%10 == 9 && err == nil { // rewind the systems too, and the level with them
			result.close = cmp.Or(result.close, b.Region("systems").Rewind(context.WithoutCancel(ctx)))
			result.check(b)
			err = s.LoadSystems(ctx, o.Options)
		}
	}
	return err
}

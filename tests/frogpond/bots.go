package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/bots"
)

// botsCommand sends bots to a server over the network. It returns the exit code.
func botsCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o bots.Options
	f := newFlags("bots", "[flags]", stderr)
	f.StringVar(&o.Address, "addr", defaultAddress, "the server's `HOST:PORT`")
	f.IntVar(&o.Count, "n", 16, fmt.Sprintf("bots, up to %d", bots.CountMost))
	f.DurationVar(&o.For, "for", time.Minute, "how long they play")
	f.Uint64Var(&o.States, "states", 0, "leave earlier, after so many states from the server; 0: stay")
	f.DurationVar(&o.Timeout, "timeout", 5*time.Second, "a bot without a packet for so long joins again")
	f.Float64Var(&o.Loss, "loss", 0, "packets that are lost, in each direction, `percent`")
	f.DurationVar(&o.Jitter, "jitter", 0, "each packet is late by a draw from 0 to this")
	f.Float64Var(&o.Duplicate, "dup", 0, "packets that come twice, `percent`")
	f.Float64Var(&o.Reorder, "reorder", 0,
		"packets that are held back for two ticks, so that others overtake them, `percent`")
	f.Uint64Var(&o.Seed, "seed", 1, "the seed of everything random")
	f.IntVar(&o.Every, "every", 2, "`ticks` from one packet of inputs to the next")
	f.IntVar(&o.Room, "room", -1, "the room to join; -1: any")
	f.Func("hostile", "attack instead: `kinds` with commas, of "+strings.Join(bots.Kinds(), ", ")+
		"; or all", func(v string) error { o.Hostile = strings.Split(v, ","); return nil })
	f.IntVar(&o.Rate, "rate", 1000, "packets a second of each attacker")
	f.BoolVar(&o.Remote, "remote", false, "the server may be on another machine")
	asJSON := f.Bool("json", false, "print one JSON object and nothing else")
	if code, ok := parseFlags(f, args, o.Check); !ok {
		return code
	}
	o.Playing = func() { fmt.Fprintf(stderr, "frogpond: %d bots play\n", o.Count) }
	debug.SetGCPercent(400) // the live heap doesn't grow, so collect less often
	result, err := bots.Run(ctx, o)
	if err == nil {
		err = printResult(stdout, *asJSON, result, result.Tell)
	}
	if err != nil {
		fmt.Fprintln(stderr, "frogpond:", err)
		return 1
	}
	return 0
}

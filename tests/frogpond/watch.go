package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/watch"
)

// watchCommand shows a room of a server in the terminal. It returns the exit code.
func watchCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o watch.Options
	f := newFlags("watch", "[flags]", stderr)
	f.StringVar(&o.Address, "addr", defaultAddress, "the server's `HOST:PORT`")
	f.IntVar(&o.Room, "room", -1, "the room to watch; -1: any")
	f.StringVar(&o.Name, "name", "watcher", "the watcher's name for others")
	f.Func("wad", "a WAD `file`, or "+doom.Builtin+", as the server has; may be a list with commas "+
		"(default: installed Freedoom, else "+doom.Builtin+")",
		func(v string) error { o.WADs = append(o.WADs, strings.Split(v, ",")...); return nil })
	f.Uint64Var(&o.Seed, "seed", 1, "of the built-in maps, as the server has")
	f.DurationVar(&o.For, "for", 24*time.Hour, "how long to watch")
	f.BoolVar(&o.Once, "once", false, "draw one picture and end")
	f.BoolVar(&o.ASCII, "ascii", false, "draw with ASCII alone")
	if code, ok := parseFlags(f, args, func() error { return checkWatch(&o) }); !ok {
		return code
	}
	if err := watch.Run(ctx, o, stdout); err != nil {
		fmt.Fprintln(stderr, "frogpond:", err)
		return 1
	}
	return 0
}

// checkWatch checks the flags and completes them.
func checkWatch(o *watch.Options) error {
	switch {
	case o.Room < -1 || o.Room > 254:
		return fmt.Errorf("-room %d: 0 to 254, or -1 for any", o.Room)
	case o.For <= 0:
		return fmt.Errorf("-for %v: must be positive", o.For)
	}
	if len(o.WADs) == 0 { // a server plays these, or its built-in maps
		o.WADs = doom.InstalledWADs()
	}
	return nil
}

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
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/with/agones"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/serve"
)

//go:embed serve.json
var defaultServePlan []byte

// defaultAddress is the default address of serve, bots and watch.
const defaultAddress = "127.0.0.1:35035"

// serveCommand serves players over UDP. It returns the exit code.
func serveCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o := &serve.Options{Say: stderr, Warm: warmToCount}
	f := newFlags("serve", "[flags]", stderr)
	asJSON := f.Bool("json", false, "print one JSON object at the end, and nothing else on stdout")
	report := f.String("report", "",
		"write the budget's last report to a `file`, as JSON; budget.Suggest makes a plan from it")
	tellsAgones := f.Bool("agones", os.Getenv(agones.PortVariable) != "",
		"tell Agones' sidecar on this machine, at the port in "+agones.PortVariable+
			" or 9358; on if the variable is set")
	tests := f.Bool("selftest", false, "with -agones: make each call to the sidecar once, without a server, and exit")
	serveFlags(f, o)
	if code, ok := parseFlags(f, args, func() (err error) {
		if *tests && !*tellsAgones {
			return errors.New("-selftest tests the calls of -agones, which is off")
		}
		if *tellsAgones {
			o.Agones, err = agones.FromEnv()
		}
		return errors.Join(err, checkServe(o))
	}); !ok {
		return code
	}
	if *tests {
		if err := selfTest(ctx, o.Agones, int64(o.Rooms)); err != nil {
			fmt.Fprintln(stderr, "frogpond: -selftest:", err)
			return 1
		}
		return 0
	}
	o.Snapshots = o.Rollback + 1
	if len(o.WADs) == 0 {
		o.WADs = doom.InstalledWADs()
	}
	signal.Ignore(syscall.SIGPIPE) // players stay when the reader of stdout or stderr goes
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	o.Reload = reload
	result, err := serve.Run(ctx, o)
	if result != nil {
		err = errors.Join(err, printResult(stdout, *asJSON, result, result.Tell))
		if *report != "" {
			err = errors.Join(err, writeJSON("-report", *report, result.Report))
		}
		if o.Timeline != "" {
			err = errors.Join(err, writeJSON("-timeline", o.Timeline, result.Timeline))
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "frogpond:", err)
	}
	if err != nil || result.Faults > 0 || result.Lost > 0 {
		return 1
	}
	return 0
}

// warmToCount warms the runtime up. From then on the runtime profiles each allocation, for the
// result. Before, while the maps load, that would take eight times as long. The result compares two
// profiles of the time after, so it misses nothing: the runtime notices another rate at the next
// allocation.
func warmToCount() {
	runtime.MemProfileRate = 1
	warmRuntime()
}

func serveFlags(f *flag.FlagSet, o *serve.Options) {
	f.StringVar(&o.Address, "addr", defaultAddress, "the UDP `address` to serve on; :PORT for all of this "+
		"machine's, IPv4 and IPv6; port 0: any")
	f.IntVar(&o.Buffer, "rcvbuf", 4<<20, "`bytes` of receive buffer to request from the system")
	f.IntVar(&o.Rooms, "rooms", 8, "matches at the same time; the plan has a slot for each")
	f.IntVar(&o.Players, "players", 16, "players of a room, at most")
	f.IntVar(&o.PerAddress, "per-address", 16, "places for players of one IP address, and one watcher "+
		"for every eight; an IPv6 /64 counts as one address; 0: no limit")
	f.IntVar(&o.Options.Workers, "workers", min(runtime.GOMAXPROCS(0), 8), "goroutines that play the rooms")
	f.IntVar(&o.Rollback, "rollback", 8, "`ticks` that a player's input may be late: the room is played again")
	f.IntVar(&o.Bytes, "bytes", 480, "of a State, at most: the packet with a player's view")
	f.IntVar(&o.Every, "every", 2, "`ticks` from one State to the next")
	f.DurationVar(&o.MapTime, "map-time", 10*time.Minute, "time on a map, then the next is played")
	f.DurationVar(&o.Timeout, "timeout", 5*time.Second, "a player without a packet for so long has left")
	f.DurationVar(&o.Drain, "drain", 10*time.Second, "after SIGTERM: how long players may go on, at most")
	f.StringVar(&o.Inputs, "inputs", "", "record all players' inputs in files of a `folder`: frogpond "+
		"offline plays them again")
	f.StringVar(&o.Saves, "saves", "", "save the rooms in a `folder`, and go on from there at the start")
	f.DurationVar(&o.SaveEvery, "save-every", 10*time.Second, "time between the saves of a room")
	f.StringVar(&o.Checkpoints, "checkpoints", "", "keep the rooms and their players in a `file`, such as "+
		"/dev/shm/frogpond, and go on from there after a kill")
	f.BoolVar(&o.Upgrade, "upgrade", false, "take over from the server that runs with the same -checkpoints; if none "+
		"runs, begin without")
	f.StringVar(&o.Scores, "scores", "", "append the players' scores to a `file`: frogpond scores shows them")
	f.StringVar(&o.Health, "health", "", "answer probes on http://`address`: GET /healthz and /readyz")
	f.StringVar(&o.HTTP, "http", "", "show the memory and the rooms to browsers on http://`address`, this machine's: "+
		"127.0.0.1:0 takes any port that is free")
	f.BoolVar(&o.HTTPPublic, "http-public", false, "-http may be an address that others reach: anyone there sees all; "+
		"there is no password")
	f.IntVar(&o.HTTPEach, "http-per-address", 32, "connections of one IP address to -http, which takes 128 "+
		"in all; behind a proxy all viewers have the proxy's address")
	f.StringVar(&o.Timeline, "timeline", "", "write the use of each arena over time to a `file` at the end, as JSON: "+
		"timeline.Data")
	f.StringVar(&o.Flight, "flight", "", "when something was full or a tick came late, write the last seconds to a "+
		"`folder`: traces, for go tool trace")
	plan := f.String("plan", "", "the memory plan, a JSON `file`, read again at SIGHUP; without it, the one in "+
		"serve.json")
	wadFlag(f, &o.WADs)
	f.StringVar(&o.Maps, "maps", "all", "the maps to play, `names` with commas")
	f.Uint64Var(&o.Seed, "seed", 1, "the seed of everything random")
	f.StringVar(&o.Log, "log", os.DevNull, "append the levels' log to a `file`")
	f.Var(&o.Plant, "plant", "put a `fault:room:tick` into the server: "+strings.Join(serve.Plants, ", "))
	o.Plan = func() (budget.Plan, error) {
		if *plan == "" {
			return budget.ParsePlan(defaultServePlan)
		}
		return budget.ReadPlan(*plan)
	}
}

func checkServe(o *serve.Options) error {
	switch {
	case o.Rooms < 1 || o.Rooms > serve.RoomsMost:
		return fmt.Errorf("-rooms %d: 1 to %d", o.Rooms, serve.RoomsMost)
	case o.Players < 1 || o.Players > serve.PlayersMost:
		return fmt.Errorf("-players %d: 1 to %d", o.Players, serve.PlayersMost)
	case o.PerAddress < 0:
		return fmt.Errorf("-per-address %d: must not be negative; 0 is no limit", o.PerAddress)
	case o.HTTPEach < 1:
		return fmt.Errorf("-http-per-address %d: at least 1", o.HTTPEach)
	case o.Options.Workers < 1:
		return fmt.Errorf("-workers %d: at least 1", o.Options.Workers)
	case o.Rollback < 0 || o.Rollback > serve.RollbackMost:
		return fmt.Errorf("-rollback %d: 0 to %d", o.Rollback, serve.RollbackMost)
	case o.Bytes < serve.BytesLeast || o.Bytes > serve.BytesMost:
		return fmt.Errorf("-bytes %d: %d to %d", o.Bytes, serve.BytesLeast, serve.BytesMost)
	case o.Every < 1 || o.Every > serve.EveryMost:
		return fmt.Errorf("-every %d: 1 to %d", o.Every, serve.EveryMost)
	case o.MapTime < time.Second || o.MapTime > serve.MapTimeMost:
		return fmt.Errorf("-map-time %v: 1s to %v", o.MapTime, serve.MapTimeMost)
	case o.Upgrade && o.Checkpoints == "":
		return errors.New("-upgrade takes over the rooms of -checkpoints: give both")
	case o.HTTPPublic && o.HTTP == "":
		return errors.New("-http-public widens -http: it needs an -http address")
	case o.Drain < 0 || o.SaveEvery <= 0 || o.Timeout <= 0 || o.Buffer < 0:
		return errors.New("-drain, -save-every, -timeout and -rcvbuf must not be negative")
	}
	return nil
}

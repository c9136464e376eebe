// Package bots plays on a server with many players at once, over a network that is as bad as the
// options say. It can also attack the server:
//
//	o := bots.Options{Address: "127.0.0.1:35035", Count: 16, For: time.Minute, Room: -1, Rate: 1}
//	result, err := bots.Run(ctx, o)
//
// Each bot is a goroutine with a socket of its own. walker.go decides a bot's inputs, network.go
// delays and loses a bot's packets, and hostile.go has the attacks.
package bots

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/client"
)

// The limits of options.
const (
	CountMost = 8192
	TimeMost  = 24 * time.Hour
	rateMost  = 100_000
)

const tickTime = time.Second / 35

// Options are the options of a run.
type Options struct {
	Network
	Address string
	Count   int
	For     time.Duration
	Seed    uint64
	States  uint64        // states of each bot before it leaves; 0: no limit
	Every   int           // ticks from one packet of inputs to the next
	Timeout time.Duration // time without a packet, then a bot joins again; 0: 5 s
	Room    int           // -1: any
	Hostile []string      // kinds of attacks; empty: the bots behave
	Rate    int           // packets a second of an attacker
	Remote  bool          // allow a server on another machine
	Playing func()        // called once each bot that behaves has seen a state; may be nil

	to    *net.UDPAddr
	still *atomic.Int32 // bots that have seen no state yet
}

// Check returns an error if an option is out of bounds, and resolves the address.
func (o *Options) Check() (err error) {
	if o.to, err = net.ResolveUDPAddr("udp", o.Address); err != nil {
		return fmt.Errorf("-addr: %w", err)
	}
	percent := func(v float64) bool { return v >= 0 && v <= 100 }
	switch {
	case !o.to.IP.IsLoopback() && !o.Remote:
		return fmt.Errorf("-addr %s: isn't this machine's; -remote allows it", o.Address)
	case o.Count < 1 || o.Count > CountMost:
		return fmt.Errorf("-n %d: 1 to %d", o.Count, CountMost)
	case o.Every < 0 || o.Every > 8:
		return fmt.Errorf("-every %d: 1 to 8", o.Every)
	case o.For <= 0 || o.For > TimeMost:
		return fmt.Errorf("-for %v: up to %v", o.For, TimeMost)
	case !percent(o.Loss) || !percent(o.Duplicate) || !percent(o.Reorder):
		return errors.New("-loss, -dup and -reorder: 0 to 100, as percent")
	case o.Jitter < 0 || o.Jitter > 10*time.Second:
		return fmt.Errorf("-jitter %v: up to 10s", o.Jitter)
	case o.Room < -1 || o.Room > 254:
		return fmt.Errorf("-room %d: 0 to 254, or -1 for any", o.Room)
	case o.Rate < 1 || o.Rate > rateMost:
		return fmt.Errorf("-rate %d: 1 to %d", o.Rate, rateMost)
	}
	return o.expand()
}

// expand replaces "all" by all kinds of attacks.
func (o *Options) expand() error {
	if slices.Contains(o.Hostile, "all") {
		o.Hostile = Kinds()
	}
	for _, kind := range o.Hostile {
		if !slices.Contains(Kinds(), kind) {
			return fmt.Errorf("-hostile %s: want one of %v, or all", kind, Kinds())
		}
	}
	return nil
}

// Run lets bots play, or attack, until their time is over or ctx is done. It returns the sum of
// their counts.
func Run(ctx context.Context, o Options) (*Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	sockets := make([]*socket, o.Count)
	defer func() {
		for _, s := range sockets {
			if s != nil {
				s.Close()
			}
		}
	}()
	for i := range sockets {
		var err error
		if sockets[i], err = dial(o.to); err != nil {
			return nil, fmt.Errorf("bot %d of %d: %w", i+1, o.Count, err)
		}
	}
	ctx, stop := context.WithTimeout(ctx, o.For)
	defer stop()
	o.still = &atomic.Int32{}
	o.still.Store(int32(o.Count))
	results := make([]Result, o.Count)
	var group sync.WaitGroup
	run, start := behave, time.Now()
	if len(o.Hostile) > 0 {
		run = attack
	}
	for i, s := range sockets {
		group.Go(func() { results[i] = run(ctx, &o, s, i, start) })
	}
	group.Wait()
	return o.sum(results), nil
}

func (o *Options) sum(results []Result) *Result {
	total := Result{Bots: o.Count}
	if len(o.Hostile) > 0 {
		total.Sent = map[string]uint64{}
	}
	for i := range results {
		total.add(&results[i])
	}
	return &total
}

func (o *Options) client(i int) client.Options {
	return client.Options{Name: fmt.Sprintf("bot %d", i), Room: o.Room, Every: o.Every,
		Timeout: o.Timeout, Seed: o.Seed<<16 ^ uint64(i)}
}

// Command pond is a small room server to copy and make your own. Players join rooms by name over
// UDP, chat, and hop about.
//
//	pond [-addr 127.0.0.1:35036] [-drain 10s] [-checkpoints /dev/shm/pond]
//
// The game's state is in one budget, with a slot for each room. A room opens whole or not at all,
// and ends in one step. A tick makes no Go allocation. With checkpoints, the rooms survive a kill
// of the process.
//
// main.go has the life of the server, server.go the seats of players, room.go a room and its rules,
// wire.go the protocol, and plan.json the memory. A game of your own begins in room.go.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
)

//go:embed plan.json
var planJSON []byte

func main() {
	address := flag.String("addr", "127.0.0.1:35036", "the UDP `address` to serve on")
	drain := flag.Duration("drain", 10*time.Second, "after SIGTERM: how long players may go on")
	checkpoints := flag.String("checkpoints", "", "the `file` of the rooms' checkpoints, such as /dev/shm/pond")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	conn, err := net.ListenPacket("udp", *address)
	if err != nil {
		log.Fatal(err)
	}
	log.Print("listens on ", conn.LocalAddr())
	if err := run(ctx, conn.(*net.UDPConn), *drain, *checkpoints); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends, and then until all players have left or the time to drain is over. If
// checkpoints isn't "", it is the file with the rooms' checkpoints.
func run(ctx context.Context, conn *net.UDPConn, drain time.Duration, checkpoints string) error {
	defer conn.Close()
	plan, err := parsePlan(checkpoints != "")
	if err != nil {
		return err
	}
	b, err := budget.Open(plan) // takes all memory
	if err != nil {
		return err
	}
	var c *save.Checkpoints
	if checkpoints != "" {
		if c, err = openCheckpoints(checkpoints, b.Slots("room").Available()); err != nil {
			return errors.Join(err, b.Close())
		}
		defer c.Close()
	}
	s, err := newServer(b, conn, c)
	if err == nil {
		err = b.Seal() // the budget asks the system for no more memory
	}
	if err != nil {
		return errors.Join(err, b.Close())
	}
	var receiver sync.WaitGroup
	receiver.Go(s.receive)
	ticks := time.NewTicker(time.Second / ticksPerSecond)
	defer ticks.Stop()
	for ctx.Err() == nil {
		<-ticks.C
		s.step()
	}
	for ends := time.Now().Add(drain); !s.drain(time.Now().After(ends)); {
		<-ticks.C
		s.step()
	}
	conn.Close()
	receiver.Wait()
	// Close returns nil if nothing leaked.
	log.Printf("%+v\n%v", s.counts, b.Report())
	return b.Close()
}

// parsePlan returns the plan. A room that keeps checkpoints is a state, and has room for two copies
// of it.
func parsePlan(keeps bool) (budget.Plan, error) {
	plan, err := budget.ParsePlan(planJSON)
	if err == nil && keeps {
		room := &plan.Regions[1]
		room.State, room.Size = true, 3*room.Size
	}
	return plan, err
}

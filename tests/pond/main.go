// Command pond is a small room server to copy and make your own. Players join rooms by name over
// UDP, chat, and hop about.
//
//	pond [-addr 127.0.0.1:35036] [-drain 10s]
//
// The game's state is in one budget, with a slot for each room. A room opens whole or not at all,
// and ends in one step. A tick makes no Go allocation.
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
)

//go:embed plan.json
var planJSON []byte

func main() {
	address := flag.String("addr", "127.0.0.1:35036", "the UDP `address` to serve on")
	drain := flag.Duration("drain", 10*time.Second, "after SIGTERM: how long players may go on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	conn, err := net.ListenPacket("udp", *address)
	if err != nil {
		log.Fatal(err)
	}
	log.Print("listens on ", conn.LocalAddr())
	if err := run(ctx, conn.(*net.UDPConn), *drain); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends, and then until all players have left or the time to drain is over.
func run(ctx context.Context, conn *net.UDPConn, drain time.Duration) error {
	defer conn.Close()
	plan, err := budget.ParsePlan(planJSON)
	if err != nil {
		return err
	}
	b, err := budget.Open(plan) // takes all memory
	if err != nil {
		return err
	}
	s, err := newServer(b, conn)
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

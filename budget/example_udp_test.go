package budget_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// Step 1: the worst case, in numbers. A program without one has no use for a budget.
const (
	workers   = 2    // each has a world of its own and a socket of its own
	unitsMax  = 256  // in a world: a unit's number is one byte
	packetMax = 1200 // bytes
	orderSize = 3    // bytes in a packet: number of the unit, dx, dy
)

// Step 2: the budget holds plain data. Types are declared once, at package level: a string, a slice
// or a map in one of them stops the program here and names the field.
type (
	Unit  struct{ X, Y int32 }
	Order struct{ Unit, DX, DY int32 }
)

var (
	units  = scope.Plain[Unit]()
	orders = scope.Plain[Order]()
)

// World is a Go value with a slice in the budget. A load makes one.
type World struct{ Units []Unit }

// Step 3: the plan. The worlds live as long as the server, so they are in the region "worlds"; the
// memory of a packet is on its worker's scratch arena. scratchSize is too small at first.
func planOf(scratchSize uint64) budget.Plan {
	return budget.Plan{
		Name:    "server",
		Regions: []budget.RegionPlan{{Name: "worlds", Size: 64 * budget.KiB}},
		// of each of a worker's two scratch arenas
		Scratch: budget.ScratchPlan{Workers: workers, Size: scratchSize},
	}
}

// Step 4: a load. It is whole or not at all: if the worlds don't fit, Load returns an error, and
// the server doesn't start.
func loadWorlds(s scope.Scope) (*[workers]World, error) {
	var worlds [workers]World
	for i := range worlds {
		// zeroed; if it doesn't fit, the load ends here, so no check is needed
		worlds[i].Units = units.Slice(s, unitsMax)
	}
	return &worlds, nil
}

// Step 5: a worker. Its packet buffer stays at the bottom of its scratch arena. The memory of one
// packet is in a scope that Do opens and closes; a full inside ends Do, and Do returns it.
func (w *World) serve(conn *net.UDPConn, scratch scope.Scratch) {
	bottom := scratch.Open("worker")
	defer bottom.Close()
	packet := bottom.Bytes(packetMax)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(packet)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // of one packet: Windows has an error for one that is too long
			time.Sleep(time.Millisecond) // the next read may also fail
			continue
		}
		answer := "done"
		err = bottom.Do("packet", func(s scope.Scope) error { return w.obey(s, packet[:n]) })
		// expected, not a bug: this packet is dropped, the next is served
		if errors.Is(err, budget.ErrFull) {
			// one line is too wide for this page
			fmt.Println("log:", strings.ReplaceAll(err.Error(), "; ", "\n  "))
			answer = "too many"
		}
		conn.WriteToUDPAddrPort([]byte(answer), from)
	}
}

// obey unpacks the orders, sorts them by unit and moves the units. It allocates before any unit
// moves: a dropped packet changes no unit.
func (w *World) obey(s scope.Scope, packet []byte) error {
	list := orders.Slice(s, len(packet)/orderSize)
	for i := range list {
		p := packet[i*orderSize:]
		list[i] = Order{Unit: int32(p[0]), DX: int32(int8(p[1])), DY: int32(int8(p[2]))}
	}
	slices.SortStableFunc(list, func(a, b Order) int { return int(a.Unit - b.Unit) })
	for _, o := range list {
		w.Units[o.Unit].X += o.DX
		w.Units[o.Unit].Y += o.DY
	}
	return nil
}

// Step 6: Open, Load, Seal; then the workers, and after their end the report.
func run(plan budget.Plan, play func(servers []net.Addr)) error {
	b, err := budget.Open(plan) // all memory is taken here
	if err != nil {
		return err
	}
	defer b.Close() // for an early return: a second Close changes nothing
	worlds, err := budget.Load(context.Background(), b.Region("worlds"), loadWorlds)
	if err != nil {
		return err
	}
	if err := b.Seal(); err != nil { // from here on the budget takes no memory from the system
		return err
	}

	var conns [workers]net.PacketConn
	var servers []net.Addr
	for i := range conns {
		if conns[i], err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
			return err
		}
		defer conns[i].Close()
		servers = append(servers, conns[i].LocalAddr())
	}
	var running sync.WaitGroup
	for i, conn := range conns {
		world, scratch := &worlds.Get()[i], b.Scratch(i, 0)
		running.Go(func() { world.serve(conn.(*net.UDPConn), scratch) })
	}
	play(servers)
	for _, conn := range conns {
		conn.Close()
	}
	running.Wait() // the report and Close come after the workers

	report := b.Report() // fmt.Print(report) draws all of it
	for _, r := range report.Arenas {
		if r.Peak > 0 {
			fmt.Printf("%s: peak %d of %d bytes\n", r.Name, r.Peak, r.Size)
		}
	}
	return b.Close() // nil: no finalizer failed, and there is no leak
}

// ask is a client: it sends count orders and returns the answer.
func ask(server net.Addr, count int) string {
	conn, err := net.Dial("udp", server.String())
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	conn.Write(make([]byte, count*orderSize))
	answer := make([]byte, 16)
	n, err := conn.Read(answer)
	if err != nil {
		return err.Error()
	}
	return string(answer[:n])
}

// Your UDP server, step by step: from an empty folder to the first full and its remedy. It takes Go
// 1.26 and gcc.
//
//	go mod init example.org/server
//	go get github.com/upfront-mem/upfront
//
// Save this file as main.go, with package main and this function as func main; go run . then prints
// the output below. Read the steps from the top, and replace the packets with your own.
func Example_udpServer() {
	play := func(servers []net.Addr) {
		fmt.Println("100 orders:", ask(servers[0], 100))
		fmt.Println("400 orders:", ask(servers[1], 400)) // as many as a packet holds
		fmt.Println("100 orders:", ask(servers[1], 100))
	}

	// Step 7: the first run. A scratch arena of 4 KiB seems enough for a packet of 1200 bytes, but
	// its 400 orders take 12 bytes each.
	fmt.Println("close:", run(planOf(4*budget.KiB), play))

	// Step 8: the log names the key of the plan and a size that suffices for the failed allocation.
	// Raise it and run again. Or use budget.Measure beforehand, which finds such sizes by itself.
	fmt.Println("close:", run(planOf(8*budget.KiB), play))
	// Output:
	// 100 orders: done
	// log: budget "server": scratch 1.0 is full: scope "packet" asked for 4800 bytes, 2896 of 4096 are free
	//   held by "worker" (1200 bytes)
	//   raise scratch.size in the plan to 6000 or more
	// 400 orders: too many
	// 100 orders: done
	// worlds: peak 4096 of 65536 bytes
	// scratch 0.0: peak 2400 of 4096 bytes
	// scratch 1.0: peak 2400 of 4096 bytes
	// close: <nil>
	// 100 orders: done
	// 400 orders: done
	// 100 orders: done
	// worlds: peak 4096 of 65536 bytes
	// scratch 0.0: peak 2400 of 8192 bytes
	// scratch 1.0: peak 6000 of 8192 bytes
	// close: <nil>
}

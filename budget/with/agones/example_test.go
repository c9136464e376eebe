package agones_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/with/agones"
	"github.com/upfront-mem/upfront/tests/sidecar"
)

// A server asks for its own game server: its address for players, and the metadata of its fleet.
func ExampleClient_GameServer() {
	fake := sidecar.New()
	fake.Change(func(g *sidecar.Server) { g.Labels["agones.dev/fleet"], g.Annotations["map"] = "pond", "E1M1" })
	server := httptest.NewServer(fake)
	defer server.Close()
	client := agones.New(strings.TrimPrefix(server.URL, "http://"))

	g, err := client.GameServer(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(g.Namespace, g.Name, g.State, g.Labels["agones.dev/fleet"], g.Annotations["map"])
	for _, port := range g.Ports {
		fmt.Println(port.Name, g.Address, port.Port)
	}
	fmt.Println(g.Counters["rooms"].Count, "of", g.Counters["rooms"].Capacity)
	if h := g.Health; !h.Disabled {
		fmt.Println("health", h.InitialDelay, h.Period, h.FailureThreshold)
	}
	// Output:
	// default pond-1 Scheduled pond E1M1
	// default 192.0.2.7 7777
	// 1 of 10
	// health 5s 5s 3
}

// A server with two rooms. In Kubernetes, agones.FromEnv returns the client.
func Example() {
	fake := sidecar.New()
	server := httptest.NewServer(fake)
	defer server.Close()
	client := agones.New(strings.TrimPrefix(server.URL, "http://"))

	b, err := budget.Open(budget.Plan{Name: "pond",
		Regions: []budget.RegionPlan{{Name: "room", Size: 64 * budget.KiB, Slots: 2}}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	var ticks atomic.Uint64 // each tick adds 1
	link, err := client.Link(b, "room", agones.Options{Ticks: ticks.Load, Log: func(err error) { log.Print(err) }})
	if err != nil {
		log.Fatal(err)
	}
	defer link.Close() // does nothing after a Shutdown

	room, err := b.Slots("room").Acquire() // players come
	if err != nil {
		log.Fatal(err)
	}
	for g := fake.Server(); g.Count != 1 || g.Capacity != 2; g = fake.Server() {
		time.Sleep(time.Millisecond)
	}
	fmt.Println(fake.Server().Count, "of", fake.Server().Capacity, "rooms")

	link.Drain() // at SIGTERM
	if err := room.Release(context.Background()); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := link.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(fake.Server().State)
	// Output:
	// 1 of 2 rooms
	// Shutdown
}

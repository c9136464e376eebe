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

// A server with two rooms. In Kubernetes, agones.FromEnv returns the client.
func Example() {
	fake := sidecar.New()
	server := httptest.NewServer(fake)
	defer server.Close()
	client := agones.New(strings.TrimPrefix(server.URL, "http://"))

	b, err := budget.Open(budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "room", Size: 64 * budget.KiB, Slots: 2}}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	var ticks atomic.Uint64 // each tick adds 1
	link, err := client.Link(b, "room", agones.Options{Ticks: ticks.Load, Log: func(err error) { log.Print(err) }})
	if err != nil {
		log.Fatal(err)
	}

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

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/upfront-mem/upfront/budget/with/agones"
)

// A sidecar may start after its game server: selfTest waits for it.
const (
	sidecarStarts = 10 * time.Second
	sidecarNap    = 100 * time.Millisecond
)

// selfTest makes each call of Agones' SDK that a server uses, in an order in which all are allowed,
// and checks the answers. It ends with Shutdown. rooms is the counter's capacity.
func selfTest(ctx context.Context, c *agones.Client, rooms int64) error {
	server, err := c.GameServer(ctx)
	for end := time.Now().Add(sidecarStarts); notThere(err) && ctx.Err() == nil && time.Now().Before(end); {
		time.Sleep(sidecarNap)
		server, err = c.GameServer(ctx)
	}
	if err != nil {
		return err
	}
	for watched, err := range c.Watch(ctx) {
		if err == nil && watched.UID != server.UID {
			err = fmt.Errorf("the watch is of the game server with the uid %q; the uid is %q", watched.UID, server.UID)
		}
		if err != nil {
			return err
		}
		break
	}
	const name = "rooms"
	shows := func(got agones.Counter, err error, want agones.Counter) error {
		if err == nil && got != want {
			err = fmt.Errorf("the counter %q is %d of %d, and was set to %d of %d", name, got.Count, got.Capacity,
				want.Count, want.Capacity)
		}
		return err
	}
	for _, call := range []func() error{
		func() error { return c.Ready(ctx) },
		func() error { return c.Health(ctx) },
		func() error { return c.Reserve(ctx, 5*time.Second) },
		func() error { return c.Allocate(ctx) },
		func() error { return c.SetLabel(ctx, "timestamp", strconv.FormatInt(server.Created, 10)) },
		func() error { return c.SetAnnotation(ctx, "UID", server.UID) },
		func() error { _, err := c.Counter(ctx, name); return err },
		func() error {
			got, err := c.SetCapacity(ctx, name, rooms)
			return shows(got, err, agones.Counter{Count: got.Count, Capacity: rooms})
		},
		func() error {
			got, err := c.SetCount(ctx, name, 0)
			return shows(got, err, agones.Counter{Count: 0, Capacity: rooms})
		},
		func() error {
			got, err := c.AddCount(ctx, name, 1)
			return shows(got, err, agones.Counter{Count: 1, Capacity: rooms})
		},
		func() error { return c.Shutdown(ctx) },
	} {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}

// notThere reports whether a call failed because no process listens.
func notThere(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial"
}

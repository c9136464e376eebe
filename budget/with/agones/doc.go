// Package agones calls the SDK of Agones, which runs game servers on Kubernetes. Next to each
// server runs a sidecar, a process that answers HTTP. A [Client] makes calls to the sidecar. A
// [Link] makes them for a budget, so that Agones knows how many rooms are in use:
//
//	sidecar, err := agones.FromEnv() // localhost, and the port that Agones sets
//	...
//	link, err := sidecar.Link(b, "room", agones.Options{Ticks: ticks.Load, Log: say})
//	...                              // play; the link needs no other call
//	link.Drain()                     // at SIGTERM, before the last matches end
//	err = link.Shutdown(ctx)         // then Agones removes the server
//
// A link makes these calls, in a goroutine of its own:
//
//   - Ready once at the start, Allocate when the first room is in use, and Ready when the last one
//     is free. An allocated server isn't removed when its fleet shrinks.
//   - The counter "rooms": its capacity is the number of the region's slots, and its count the
//     slots in use. The link must be the counter's only writer: an allocation must not increment
//     it.
//   - The label "rooms", in Kubernetes agones.dev/sdk-rooms: "free", "full" or "draining".
//   - Health twice in each period of the fleet's spec, while Options.Ticks changes. If the program
//     hangs, the calls stop and Agones replaces the server.
//
// The command upfront plan fleet writes a fleet with this counter.
//
// # The program never waits
//
// Of a Link's methods only Shutdown waits for the sidecar. The link reads the number of slots in
// use four times a second, and sends the newest number. If nothing changes, it only calls Health
// and, every five seconds, reads the game server.
//
// A call that fails is repeated after a quarter of a second, then after twice the time, up to eight
// seconds (for Health, half a period), or at once when another call succeeds again. Other calls go
// on meanwhile. Options.Log gets the first error of each kind of call, and the next only after such
// a call succeeded. So a fleet without counters causes one line of a log.
//
// The link compares the game server's state, counter and label with its own, and calls again where
// they differ, such as after a restart of the sidecar. It doesn't change an allocated server in
// which no room is in use, because players may be on their way. An annotation of the game server
// holds the time of the last allocation. If the link saw that time before its last Ready, there was
// no new allocation: the Ready was lost, and the link repeats it.
//
// # Limits
//
// A client accepts as an answer only one JSON object of at most 1 MiB with status 200. It follows
// no redirects and uses no proxies. Agones' lists and its player tracking aren't supported.
//
// # Goroutines
//
// Any goroutine may call any function.
package agones

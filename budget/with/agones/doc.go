// Package agones calls the SDK of Agones, which runs game servers on Kubernetes. Next to each
// server runs a sidecar, a process that answers HTTP. A [Client] makes calls to the sidecar. A
// [Link] makes these calls for a budget, so that Agones knows how many rooms are in use:
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
//   - Ready when no room is in use, and Allocate when the first room is in use. Agones doesn't
//     remove an allocated server when the fleet shrinks.
//   - The counter "rooms". By default the counter's capacity is the number of the region's slots,
//     and its count is the number of slots in use. Only the link may write the counter, so an
//     allocation must not increment the counter.
//   - The label "rooms", in Kubernetes agones.dev/sdk-rooms: "free", "full" or "draining".
//   - Health about twice in each period of the fleet's spec, while Options.Ticks changes. If the
//     program hangs, the calls stop and Agones replaces the server.
//
// The command upfront plan fleet writes a fleet with this counter.
//
// # The program never waits
//
// Of a Link's methods only Shutdown waits for the sidecar. The link reads the number of slots in
// use four times a second, and sends the newest number. If nothing changes, the link only calls
// Health, and reads the game server every five seconds.
//
// The link repeats a failed call after a quarter of a second, and then after twice the last time,
// up to eight seconds (for Health, half a period). When another call succeeds again, the link
// repeats the failed call at once. Other calls go on meanwhile. Options.Log gets the first error of
// each kind of call. It gets another error of this kind only after such a call succeeded. So a
// fleet without counters causes one line of a log.
//
// The link compares the game server's state, counter and label with the values of its last calls.
// If they differ, such as after a restart of the sidecar, the link repeats the calls; after Drain
// it repeats neither Ready nor Allocate. The link doesn't change an allocated server in which no
// room is in use, because players may be on their way. An annotation of the game server holds the
// time of the last allocation. If the link saw that time before its last Ready, there was no new
// allocation. Then the Ready was lost, and the link repeats the Ready.
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

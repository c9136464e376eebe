// Package agones calls the SDK of Agones, which runs game servers on Kubernetes. Each server has a
// sidecar, a process next to it that speaks HTTP; a [Client] makes its calls. A [Link] ties a
// budget to it, so that Agones knows how many rooms are in use:
//
//	sidecar, err := agones.FromEnv() // localhost, and the port that Agones sets
//	...
//	link, err := sidecar.Link(b, "room", agones.Options{Ticks: ticks.Load, Log: say})
//	...                              // play; the link needs no other call
//	link.Drain()                     // at SIGTERM: the last matches end
//	err = link.Shutdown(ctx)         // then Agones removes the server
//
// A link makes these calls, in a goroutine of its own:
//
//   - Ready once at the start, Allocate when the first room is in use, and Ready when the last one
//     is free. An allocated server isn't removed when its fleet shrinks.
//   - The counter "rooms": its capacity is the number of the region's slots, and its count the
//     slots in use. The count is set and never added to, so a repeated call does no harm. The link
//     must be its only writer: an allocation must not increment it.
//   - The label "rooms", in Kubernetes agones.dev/sdk-rooms: "free", "full" or "draining".
//   - Health twice in each period of the fleet's spec, while Options.Ticks changes. If the program
//     hangs, Agones gets no Health, and replaces the server.
//
// The command upfront plan fleet writes a fleet with this counter.
//
// # The program never waits
//
// No call of the program waits for the sidecar, except for those of Client, and Shutdown. The link
// reads the number of slots in use four times a second, and sends the newest; nothing is queued. A
// call takes two seconds at most, and allocates about 12 KiB on the Go heap. If nothing changes,
// the calls are those of Health and, every five seconds, one that reads the game server.
//
// A call that fails is repeated after a quarter of a second, then after twice the time, up to eight
// seconds, or at once when another call succeeds again; other calls go on meanwhile. Options.Log
// gets the first error of each kind of call, and the next one only after such a call succeeded. So
// a fleet without counters is one line of a log.
//
// The link compares the game server's state, counter and label with its own, and calls again where
// they differ. That repairs the loss of a sidecar that restarts. It leaves an allocated server
// alone that has no room in use yet: the players are on their way. Agones notes the time of each
// allocation in an annotation. If the link saw that time before its last Ready, there was no new
// allocation: the Ready was lost, and the link repeats it.
//
// # Limits
//
// A client believes no answer: it must be one JSON object of at most 1 MiB with status 200.
// Redirects aren't followed, and proxies aren't used. Agones' lists and its player tracking aren't
// supported.
//
// # Goroutines
//
// Any goroutine may call any function.
package agones

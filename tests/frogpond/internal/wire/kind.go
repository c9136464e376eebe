// Package wire is frogpond's protocol: packets to bytes and back, cookies, MACs, replay windows, and
// views with their deltas. PROTOCOL.md beside frogpond says the same for who writes a client in
// another language.
//
// It is pure: no socket, no clock, no budget. Its types are plain data, so that a budget can hold
// them, and no function allocates. Each packet has a function that appends it and one that parses
// it, in a file of its name; a parser looks at every byte, refuses what the page doesn't say, and
// never panics.
//
// header.go is what packets of a session have in common, mac.go what proves who sent them, window.go
// that they are new; cookies.go is the handshake's. view.go is what a player is shown, operation.go
// what of it goes from one view to the next, choose.go which of that goes first when it isn't all,
// hash.go how a client sees that it has the same.
package wire

// Kind is what a packet is: its first byte.
type Kind uint8

// The packets, in the order in which a session sees them.
const (
	Hello     Kind = 1 + iota // client: who is there?
	Challenge                 // server: say this again
	Join                      // client: with the server's cookie
	Accept                    // server: a session, or the old one again
	Refuse                    // server: not now, with numbers
	Inputs                    // client, of a session: what the player wants
	State                     // server, of a session: what the player sees
	Leave                     // client, of a session: it goes
	Notice                    // server, of a session: what will happen to it
)

// Version is the protocol's, in the second byte of each packet of the handshake.
const Version = 1

// What a packet and what a session are bounded by.
const (
	PacketMost = 1200 // bytes of a datagram
	Things     = 64   // of a view
	Views      = 32   // of a session, kept
	InputsMost = 8    // of a packet
	NameSize   = 16
)

// Bytes of the packets that have one size. An answer is never larger than what it answers, so nobody
// is flooded by a server that was asked in his name.
const (
	HelloSize     = 64
	ChallengeSize = 32
	JoinSize      = 96
	AcceptSize    = 80
	RefuseSize    = 32
	LeaveSize     = Header
	NoticeSize    = Header + 16
)

// KindOf is what a packet says that it is, if it may be one at all.
func KindOf(p []byte) (Kind, Reason) {
	if len(p) < Header || len(p) > PacketMost {
		return 0, Short
	}
	if k := Kind(p[0]); k >= Hello && k <= Notice {
		return k, 0
	}
	return 0, BadKind
}

// handshake says whether a packet is of a kind, its size, and this version.
func handshake(p []byte, kind Kind, size int) Reason {
	switch {
	case len(p) == 0 || len(p) > PacketMost:
		return Short
	case Kind(p[0]) != kind:
		return BadKind
	case len(p) != size:
		return Short
	case p[1] != Version:
		return BadVersion
	}
	return 0
}

// zeros says whether reserved bytes are what they must be.
func zeros(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

// appendZeros fills a packet up to its size.
func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, 0)
	}
	return dst
}

// Package wire is frogpond's protocol: packets, cookies, MACs, replay windows, and views with their
// deltas. frogpond's PROTOCOL.md describes it for clients in other languages.
//
//	packet := wire.AppendHello(buffer[:0], nonce)
//	nonce, reason := wire.ParseHello(packet) // 0: it is well-formed
//
// For each kind of packet, a file of its name has a function that appends the packet, and a
// function that parses it. A parser checks every byte by the rules of PROTOCOL.md, and never
// panics. The package uses no socket, clock or budget. Its functions don't allocate. Its types are
// plain data, so they may be in a budget.
//
// Packets of a session use header.go, mac.go, which proves their sender, and window.go, which
// refuses repeated packets. The handshake uses cookies.go. view.go has a player's view,
// operation.go a difference between two views, and hash.go the check of a view. If a State has no
// room for all differences, choose.go chooses among them.
package wire

// Kind is the kind of a packet: its first byte.
type Kind uint8

// The packets, in the order of a session.
const (
	Hello     Kind = 1 + iota // client: requests a cookie
	Challenge                 // server: a cookie to return
	Join                      // client: returns the cookie
	Accept                    // server: a session, new or continued
	Refuse                    // server: no place, and the reason
	Inputs                    // client, of a session: the player's inputs
	State                     // server, of a session: the player's view
	Leave                     // client, of a session: the player leaves
	Notice                    // server, of a session: its end, the next map
)

// Version is the version of the protocol, in the second byte of each packet of the handshake.
const Version = 1

// The limits of packets and sessions.
const (
	PacketMost = 1200 // bytes of a datagram
	Things     = 64   // of a view
	Views      = 32   // kept for a session
	InputsMost = 8    // of a packet
	NameSize   = 16
)

// Bytes of the packets with one size. An answer is never larger than its request, so the server
// can't amplify a flood to a forged address.
const (
	HelloSize     = 64
	ChallengeSize = 32
	JoinSize      = 96
	AcceptSize    = 80
	RefuseSize    = 32
	LeaveSize     = Header
	NoticeSize    = Header + 16
)

// KindOf returns the kind in a packet's first byte, or the reason why the packet has none.
func KindOf(p []byte) (Kind, Reason) {
	if len(p) < Header || len(p) > PacketMost {
		return 0, Short
	}
	if k := Kind(p[0]); k >= Hello && k <= Notice {
		return k, 0
	}
	return 0, BadKind
}

// handshake checks a packet's kind, size and version.
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

func zeros(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

// appendZeros appends n zeros.
func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, 0)
	}
	return dst
}

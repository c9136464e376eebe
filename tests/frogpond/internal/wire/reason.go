package wire

// Reason is the reason why a packet is dropped, or 0. Servers and clients count dropped packets by
// reason.
type Reason uint8

const (
	Short      Reason = 1 + iota // wrong size or shape for its kind
	BadVersion                   // another version of the protocol
	BadKind                      // unknown, or not for this side
	BadCookie                    // forged, of another address, or too old
	BadSession                   // unknown session
	BadAddress                   // not the session's address
	BadMAC                       // not by the session's key
	Replayed                     // came before, or is too old to know
	BadEpoch                     // of another map
	Late                         // inputs of ticks that can't be played again
	Ahead                        // inputs of ticks too far away
	Flooded                      // more than a session may send
	NoBase                       // a delta of a view that is gone
	WrongHash                    // the view differs from the server's
	Reasons                      // the number of reasons, 0 included
)

var reasons = [Reasons]string{
	0: "", Short: "malformed", BadVersion: "version", BadKind: "kind", BadCookie: "cookie",
	BadSession: "session", BadAddress: "address", BadMAC: "mac", Replayed: "replay",
	BadEpoch: "epoch", Late: "late", Ahead: "ahead", Flooded: "flood",
	NoBase: "base", WrongHash: "hash",
}

// String returns the reason's word in results.
func (r Reason) String() string {
	if r < Reasons {
		return reasons[r]
	}
	return "unknown"
}

package wire

// Reason is why a packet is dropped; who drops counts by it. 0: it isn't.
type Reason uint8

// What is wrong with a packet: its bytes, who sent it, or when it came.
const (
	Short      Reason = 1 + iota // not of its kind's size and shape
	BadVersion                   // of another protocol
	BadKind                      // none, or not for this side
	BadCookie                    // forged, of another address, or too old
	BadSession                   // nobody's
	BadAddress                   // not where the session's packets come from
	BadMAC                       // not by the session's key
	Replayed                     // it came before, or is too old to know
	BadEpoch                     // of another map
	Late                         // inputs of ticks that can't be played again
	Ahead                        // inputs of ticks too far away
	Flooded                      // more than a session may send
	NoBase                       // a delta of a view that isn't here any more
	WrongHash                    // a view that isn't what the server has
	Reasons                      // how many there are, 0 among them
)

var reasons = [Reasons]string{
	0: "", Short: "malformed", BadVersion: "version", BadKind: "kind", BadCookie: "cookie",
	BadSession: "session", BadAddress: "address", BadMAC: "mac", Replayed: "replay",
	BadEpoch: "epoch", Late: "late", Ahead: "ahead", Flooded: "flood",
	NoBase: "base", WrongHash: "hash",
}

// String is the word that a result has for it.
func (r Reason) String() string {
	if r < Reasons {
		return reasons[r]
	}
	return "unknown"
}

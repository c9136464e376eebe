package bots

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// Result is the sum of the bots' counts. Bytes and packets are those of the sockets.
type Result struct {
	Bots        int    `json:"n"`
	Joined      uint64 `json:"joined"`  // accepts
	Refused     uint64 `json:"refused"` // answers
	Lost        uint64 `json:"lost"`    // timed out while behaving
	WrongStates uint64 `json:"wrong_states"`
	States      uint64 `json:"states"`
	Stale       uint64 `json:"stale_states"` // older than a newer one, or of the last map
	Baseless    uint64 `json:"baseless_states"`
	RoomsEnded  uint64 `json:"rooms_ended"`
	PacketsIn   uint64 `json:"packets_in"`
	PacketsOut  uint64 `json:"packets_out"`
	BytesIn     uint64 `json:"bytes_in"`
	BytesOut    uint64 `json:"bytes_out"`
	Closing     uint64 `json:"closing"` // bots that left because the server closes

	Sent  map[string]uint64 `json:"sent,omitempty"`   // by kind of hostile bot
	GotIn *uint64           `json:"got_in,omitempty"` // sessions without an honest cookie
}

func (r *Result) add(o *Result) {
	r.Joined += o.Joined
	r.Refused += o.Refused
	r.Lost += o.Lost
	r.WrongStates += o.WrongStates
	r.States += o.States
	r.Stale += o.Stale
	r.Baseless += o.Baseless
	r.RoomsEnded += o.RoomsEnded
	r.PacketsIn += o.PacketsIn
	r.PacketsOut += o.PacketsOut
	r.BytesIn += o.BytesIn
	r.BytesOut += o.BytesOut
	r.Closing += o.Closing
	for kind, n := range o.Sent {
		r.Sent[kind] += n
	}
	if o.GotIn != nil {
		if r.GotIn == nil {
			r.GotIn = new(uint64)
		}
		*r.GotIn += *o.GotIn
	}
}

// Tell writes the result as text.
func (r *Result) Tell(out io.Writer) {
	fmt.Fprintf(out, "%d bots sent %d packets (%d bytes) and got %d (%d bytes).\n",
		r.Bots, r.PacketsOut, r.BytesOut, r.PacketsIn, r.BytesIn)
	if r.GotIn != nil {
		for _, kind := range slices.Sorted(maps.Keys(r.Sent)) {
			fmt.Fprintf(out, "  %-8s sent %d\n", kind, r.Sent[kind])
		}
		fmt.Fprintf(out, "%d got in without an honest cookie.\n", *r.GotIn)
		return
	}
	fmt.Fprintf(out, "They joined %d times, were refused %d times, and lost %d sessions.\n",
		r.Joined, r.Refused, r.Lost)
	fmt.Fprintf(out, "Of %d states %d were wrong; %d more came too late, %d without their base.\n",
		r.States+r.WrongStates, r.WrongStates, r.Stale, r.Baseless)
	if r.RoomsEnded > 0 {
		fmt.Fprintf(out, "%d lost their room, which ended.\n", r.RoomsEnded)
	}
	if r.Closing > 0 {
		fmt.Fprintf(out, "%d left because the server was closing.\n", r.Closing)
	}
}

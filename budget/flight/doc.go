// Package flight keeps what a program did in the last seconds, and writes it to a file when something was full or a tick
// came late: a trace of the Go runtime (runtime/trace), which `go tool trace FILE` shows. In it each Load, Rewind, Release
// and NextFrame of a budget is a region by that name: "upfront.Load".
//
//	r, err := flight.Start("/var/lib/pond", flight.Options{Name: "pond"})
//	defer r.Close()
//
//	err = r.Watch(server.tick())         // the same error; writes when it is a full
//	if late {
//		r.Dump("a late tick")
//	}
//
// Neither waits: a goroutine of the recorder writes. How many files there may be, and how close together, is bounded;
// what was left out is counted.
//
// The runtime has one flight recorder at a time. While it records, a program is some per cent slower, and takes
// Options.Bytes of the Go heap, about; nothing of that is planned memory. A nil Recorder is one that is off.
package flight

package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/trace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upfront-mem/upfront/budget"
)

// flight keeps the last seconds with the runtime's flight recorder, and writes them to a folder: at
// most 8 traces in a run, with a rest after each. A nil flight records nothing.
type flight struct {
	recorder *trace.FlightRecorder
	folder   string
	rest     time.Duration
	say      func(error)
	// Set while a trace is written, for the rest afterwards, and for good after the last trace.
	busy    atomic.Bool
	traces  int // traces written; used only while busy
	writing sync.WaitGroup
}

// newFlight starts the runtime's flight recorder. It fails if one runs already, or if the folder
// can't be made.
func newFlight(folder string, rest time.Duration, say func(error)) (*flight, error) {
	f := &flight{folder: folder, rest: rest, say: say,
		recorder: trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: 5 * time.Second, MaxBytes: 16 << 20})}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("-flight: %w", err)
	}
	if err := f.recorder.Start(); err != nil {
		return nil, fmt.Errorf("-flight: %w", err)
	}
	return f, nil
}

// dump writes a trace in a goroutine, and puts the reason into the trace. It doesn't wait, and does
// nothing while the flight is busy.
func (f *flight) dump(reason string) {
	if f == nil || !f.busy.CompareAndSwap(false, true) {
		return
	}
	f.writing.Go(func() {
		trace.Log(context.Background(), "frogpond.flight", reason)
		file, err := os.CreateTemp(f.folder, "frogpond-*.trace")
		if err == nil {
			_, err = f.recorder.WriteTo(file)
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			f.say(fmt.Errorf("-flight: %w", err))
		} else {
			f.say(fmt.Errorf("%s: the last seconds are in %s", reason, file.Name()))
		}
		if f.traces++; f.traces < 8 {
			time.AfterFunc(f.rest, func() { f.busy.Store(false) })
		}
	})
}

// watch calls dump if err is an ErrFull, with its text as the reason.
func (f *flight) watch(err error) {
	if f != nil && errors.Is(err, budget.ErrFull) {
		f.dump(err.Error())
	}
}

// close waits for the trace in progress, and stops the recorder.
func (f *flight) close() {
	if f != nil {
		f.writing.Wait()
		f.recorder.Stop()
	}
}

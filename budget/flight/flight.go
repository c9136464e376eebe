package flight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/trace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upfront-mem/upfront/budget"
)

// Options are those of a recorder. The zero value is of use.
type Options struct {
	Name    string                    // of the files: NAME-001.trace; "flight"
	Files   int                       // how many of them the folder may have, those of earlier runs among them; 8
	Every   time.Duration             // how long after a file, or a failed one, nothing is written; 10 s
	Age     time.Duration             // how far back a file goes at least, as far as Bytes allow; 5 s
	Bytes   uint64                    // what the record may take of the Go heap, about; 16 MiB
	OnFile  func(file, reason string) // called when one was written; it may not call Close, which waits for it
	OnError func(error)               // called when one couldn't be; likewise
}

func (o Options) orDefault() Options {
	o.Name, o.Files, o.Every = cmp.Or(o.Name, "flight"), cmp.Or(o.Files, 8), cmp.Or(o.Every, 10*time.Second)
	o.Age, o.Bytes = cmp.Or(o.Age, 5*time.Second), cmp.Or(o.Bytes, 16<<20)
	return o
}

// Counts is what became of all that was asked for.
type Counts struct {
	Written int64 `json:"written"`
	LeftOut int64 `json:"left_out"` // another was being written, or it was too soon
	Failed  int64 `json:"failed"`   // OnError knows why
}

// Recorder keeps the last seconds. Its methods are for any goroutine; those of a nil Recorder do nothing.
type Recorder struct {
	dir     string
	options Options
	flight  *trace.FlightRecorder
	asked   chan string // reasons
	over    chan struct{}
	done    chan struct{}
	close   sync.Once

	written, leftOut, failed atomic.Int64
}

// Start begins to record, for files in the folder, which is there. It is refused while another recorder of the process is
// at work.
func Start(dir string, o Options) (*Recorder, error) {
	o = o.orDefault()
	if o.Files < 0 || o.Every < 0 || o.Age < 0 || filepath.Base(o.Name) != o.Name {
		return nil, fmt.Errorf("flight: Name is to be without a folder, and Files, Every and Age above 0: they are %q, %d, %v, %v",
			o.Name, o.Files, o.Every, o.Age)
	}
	switch folder, err := os.Stat(dir); {
	case err != nil:
		return nil, fmt.Errorf("flight: %w", err)
	case !folder.IsDir():
		return nil, fmt.Errorf("flight: %s is no folder", dir)
	}
	r := &Recorder{dir: dir, options: o, asked: make(chan string, 1), over: make(chan struct{}), done: make(chan struct{}),
		flight: trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: o.Age, MaxBytes: o.Bytes})}
	if err := r.flight.Start(); err != nil {
		return nil, fmt.Errorf("flight: %w", err)
	}
	go r.run()
	return r, nil
}

// Dump has the last seconds written. The reason is a log of the trace, under "upfront.flight". It doesn't wait, and makes no Go
// allocation; whether something comes of it, Counts says.
func (r *Recorder) Dump(reason string) {
	if r == nil {
		return
	}
	select {
	case <-r.over:
		r.leftOut.Add(1)
		return
	default:
	}
	select {
	case r.asked <- reason:
	default:
		r.leftOut.Add(1)
	}
}

// Watch is Dump for an error that is a full, with its text; it returns every error as it is.
func (r *Recorder) Watch(err error) error {
	if r != nil && errors.Is(err, budget.ErrFull) {
		r.Dump(err.Error())
	}
	return err
}

// Counts is what became of what was asked for so far.
func (r *Recorder) Counts() Counts {
	if r == nil {
		return Counts{}
	}
	return Counts{Written: r.written.Load(), LeftOut: r.leftOut.Load(), Failed: r.failed.Load()}
}

// Close writes what was asked for before, and ends the record. A second Close does nothing.
func (r *Recorder) Close() {
	if r == nil {
		return
	}
	r.close.Do(func() { close(r.over) })
	<-r.done
	select {
	case <-r.asked: // beside Close
		r.leftOut.Add(1)
	default:
	}
}

// run writes one after the other.
func (r *Recorder) run() {
	defer close(r.done)
	defer r.flight.Stop()
	var rest time.Time
	for {
		select {
		case reason := <-r.asked:
			rest = r.serve(reason, rest)
		case <-r.over:
			select {
			case reason := <-r.asked:
				r.serve(reason, rest)
			default:
			}
			return
		}
	}
}

// serve writes, unless it is before the end of the rest; it gives when the next begins to be possible.
func (r *Recorder) serve(reason string, rest time.Time) time.Time {
	if time.Now().Before(rest) {
		r.leftOut.Add(1)
		return rest
	}
	file, err := r.write(reason)
	switch {
	case err != nil:
		r.failed.Add(1)
		if r.options.OnError != nil {
			r.options.OnError(fmt.Errorf("flight: %q: %w", reason, err))
		}
	default:
		r.written.Add(1)
		if r.options.OnFile != nil {
			r.options.OnFile(file, reason)
		}
	}
	return time.Now().Add(r.options.Every)
}

// write gives the file. One that isn't whole isn't kept.
func (r *Recorder) write(reason string) (path string, err error) {
	file, err := r.create()
	if err != nil {
		return "", err
	}
	trace.Log(context.Background(), "upfront.flight", reason)
	_, err = r.flight.WriteTo(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

// create takes the first number that no file has.
func (r *Recorder) create() (*os.File, error) {
	for i := range r.options.Files {
		path := filepath.Join(r.dir, fmt.Sprintf("%s-%03d.trace", r.options.Name, i+1))
		file, err := openFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if !errors.Is(err, fs.ErrExist) {
			return file, err
		}
	}
	return nil, fmt.Errorf("%s has all its %d files, NAME-001.trace and so on: take some away, or raise Options.Files", r.dir, r.options.Files)
}

// openFile is os.OpenFile; tests replace it.
var openFile = os.OpenFile

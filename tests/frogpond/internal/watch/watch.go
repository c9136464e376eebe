package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/chart"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/client"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// Options are the options of a watcher.
type Options struct {
	Address string
	Room    int // -1: any
	Name    string
	WADs    []string
	Seed    uint64 // of the built-in maps
	For     time.Duration
	Once    bool // one picture
	ASCII   bool
}

const (
	tickTime    = time.Second / 35
	pictureTime = time.Second / 10 // between two pictures, at least
)

// The terminal's codes: hide the cursor and clear the screen; show the cursor; move it to the upper
// left.
const (
	hideCursor = "\x1b[?25l\x1b[2J"
	showCursor = "\x1b[?25h\n"
	home       = "\x1b[H"
)

type watcher struct {
	options Options
	socket  net.Conn
	client  *client.Client
	charts  *chart.Charts
	chart   *chart.Chart // of the map, or nil
	picture Picture
	out     io.Writer
	size    func() (columns, rows int)
	text    []byte
	shown   string // the map
	missing string // the reason for a missing chart
	buffer  [1500]byte
	start   time.Time
}

// Run watches until its time is over or ctx ends. It returns an error if it saw no view.
func Run(ctx context.Context, o Options, out io.Writer) (err error) {
	charts, err := chart.Open(ctx, o.WADs, o.Seed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, charts.Close()) }()
	socket, err := net.Dial("udp", o.Address)
	if err != nil {
		return err
	}
	defer socket.Close()
	w := &watcher{options: o, socket: socket, charts: charts, out: out, start: time.Now(),
		client: client.New(client.Options{Name: o.Name, Room: o.Room, Watch: true,
			Seed: uint64(time.Now().UnixNano())})}
	w.size = func() (int, int) { return 80, 24 }
	w.picture.ASCII = o.ASCII
	if file, ok := out.(*os.File); ok {
		if _, _, terminal := terminalSize(file); terminal {
			w.picture.Coloured = true
			w.size = func() (int, int) { columns, rows, _ := terminalSize(file); return columns, rows }
		}
	}
	return w.watch(ctx)
}

func (w *watcher) watch(ctx context.Context) (err error) {
	if w.picture.Coloured && !w.options.Once {
		if _, err := io.WriteString(w.out, hideCursor); err != nil {
			return err
		}
		defer io.WriteString(w.out, showCursor)
	}
	ctx, stop := context.WithTimeout(ctx, w.options.For)
	defer stop()
	pictures := 0
	for next, draw := time.Duration(0), time.Duration(0); ctx.Err() == nil; {
		now := time.Since(w.start)
		if now >= next {
			next = max(next, now-time.Second) + tickTime
			w.send(w.client.Tick(now, wire.Input{}))
		}
		if now >= draw && w.client.View() != nil && w.client.Map() != "" {
			if err := w.show(ctx); err != nil {
				return err
			}
			pictures, draw = pictures+1, now+pictureTime
			if w.options.Once {
				break
			}
		}
		w.receive(next)
	}
	w.send(w.client.Leave())
	if pictures == 0 {
		return w.nothing()
	}
	return nil
}

// nothing returns an error with the reason why no view came.
func (w *watcher) nothing() error {
	if w.client.Refusals > 0 {
		r := w.client.Refusal()
		if r.Reason == wire.AddressFull {
			return fmt.Errorf("%s: %v: this one has %d places, and may have %d", w.options.Address, r.Reason,
				r.Players, r.Places)
		}
		return fmt.Errorf("%s: %v: %d players in %d places of %d rooms", w.options.Address, r.Reason,
			r.Players, r.Places, r.Rooms)
	}
	return fmt.Errorf("%s: no answer", w.options.Address)
}

func (w *watcher) send(packet []byte) {
	if packet != nil {
		w.socket.Write(packet) // a failure is like a lost packet
	}
}

func (w *watcher) receive(until time.Duration) {
	w.socket.SetReadDeadline(w.start.Add(until))
	for {
		n, err := w.socket.Read(w.buffer[:])
		if err == nil {
			w.client.Handle(w.buffer[:n], time.Since(w.start))
			continue
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) { // no server; the next tick asks again
			time.Sleep(time.Until(w.start.Add(until)))
		}
		return
	}
}

func (w *watcher) show(ctx context.Context) error {
	if name := w.client.Map(); name != w.shown {
		w.shown, w.missing = name, ""
		var err error
		if w.chart, err = w.charts.Load(context.WithoutCancel(ctx), name); err != nil {
			w.chart, w.missing = nil, " ("+err.Error()+")"
		}
	}
	columns, rows := w.size()
	say := fmt.Sprintf("room %d, %s%s, %s", w.client.Room(), w.shown, w.missing,
		Figures(w.client.View()))
	if n := w.client.WrongStates; n > 0 {
		say += fmt.Sprintf(", %d states wrong", n)
	}
	if seconds, closing := w.client.Closing(); closing {
		say += fmt.Sprintf(", the server closes in %d s", seconds)
	}
	w.text = w.text[:0]
	if w.picture.Coloured && !w.options.Once {
		w.text = append(w.text, home...)
	}
	w.text = w.picture.Draw(w.text, columns, rows, w.chart, w.client.View(), say)
	if !w.picture.Coloured || w.options.Once {
		w.text = append(w.text, '\n')
	}
	_, err := w.out.Write(w.text)
	return err
}

package serve

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/scope"
)

// Plant is a fault to put into a room of a server at a tick, to test the consequences. The zero
// Plant is no fault.
type Plant struct {
	Kind string
	Room int
	Tick uint32
	done *bool
}

// Plants are the kinds of faults: the room panics; the scratch arena of its tick is full; the
// server's socket is closed.
var Plants = []string{"panic", "full", "socket"}

// Set parses a fault, a room and a tick: "panic:3:100".
func (p *Plant) Set(text string) (err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 || !strings.Contains(" "+strings.Join(Plants, " ")+" ", " "+parts[0]+" ") {
		return fmt.Errorf("want a fault (%s), a room and a tick: panic:3:100", strings.Join(Plants, ", "))
	}
	p.Kind, p.done = parts[0], new(bool)
	if p.Room, err = strconv.Atoi(parts[1]); err == nil {
		var tick uint64
		tick, err = strconv.ParseUint(parts[2], 10, 32)
		p.Tick = uint32(tick)
	}
	return err
}

func (p *Plant) String() string {
	if p.Kind == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d", p.Kind, p.Room, p.Tick)
}

var bigMaker = scope.Plain[[1 << 20]byte]()

// into commits the fault, once, if it is due. It runs before each tick of a room.
func (p *Plant) into(w *worker, r *room) error {
	if p.Kind == "" || p.Room != r.number || r.play.tick < p.Tick || *p.done {
		return nil
	}
	*p.done = true
	switch p.Kind {
	case "panic":
		panic("planted")
	case "full":
		return w.s.b.Scratch(w.index, 0).Do("planted", func(s scope.Scope) error {
			for {
				bigMaker.New(s)
			}
		})
	default:
		return r.s.socket.Close()
	}
}

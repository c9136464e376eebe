package serve

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/scope"
)

// Plant is a fault that is put into a server, to see what becomes of it: in a room, once it has
// played so many ticks; or nothing.
type Plant struct {
	Kind string
	Room int
	Tick uint32
	done *bool
}

// Plants are the faults that there are: a room panics; its tick finds no room on the scratch; the
// socket is closed behind the server's back.
var Plants = []string{"panic", "full", "socket"}

// Set reads "panic:3:100": a fault, a room, a tick.
func (p *Plant) Set(text string) (err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 || !strings.Contains(" "+strings.Join(Plants, " ")+" ", " "+parts[0]+" ") {
		return fmt.Errorf("it is a fault (%s), a room and a tick: panic:3:100", strings.Join(Plants, ", "))
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

// into is called before each tick of a room.
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

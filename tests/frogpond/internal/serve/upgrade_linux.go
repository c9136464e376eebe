package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/udp"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// A running server hands over to another process, its heir, which may be of a newer program. They
// speak over a Unix socket, FILE.sock for the checkpoints FILE:
//
//	the server:  the names of its rooms' maps, a line of JSON
//	the heir:    "ready", when it has loaded these maps
//	the server:  "go", and its UDP socket. It has stopped, and closed its files
//	the heir:    "plays", or the reason why it can't
//
// Between "ready" and "plays" packets wait in the UDP socket, so none is lost. The lock of the
// checkpoints decides whose turn it is: if a process dies, or the heir refuses the checkpoints, the
// server plays on if the lock is free.

// heirTime is the longest wait for an heir that loads maps, or has got the socket.
const heirTime = 30 * time.Second

// heir is the other process of a hand-over: for the server its heir, for the heir the server.
type heir struct {
	*net.UnixConn
	lines *bufio.Reader
	maps  []string    // of the server's rooms
	stop  func() bool // the end of ctx no longer closes the connection
}

func (h *heir) read() (string, error) {
	line, err := h.lines.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// awaitHeir listens for heirs, if the server has checkpoints. The address of a server that was
// killed is free, because this server has its checkpoints.
func (s *Server) awaitHeir() error {
	if s.checkpoints == nil {
		return nil
	}
	name := s.o.Checkpoints + ".sock"
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("-checkpoints: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		s.say(fmt.Errorf("-checkpoints: no other process can take over: %w", err))
		return nil
	}
	ended, met := make(chan struct{}), &atomic.Pointer[heir]{}
	go func() {
		defer close(ended)
		acceptHeirs(s, listener, met)
	}()
	s.stopHeirs = func() error {
		err := listener.Close()
		if h := met.Load(); h != nil {
			_ = h.Close()
		}
		<-ended
		return err
	}
	return nil
}

// acceptHeirs calls meetHeir for one heir after the other, until the listener is closed. It passes
// an heir that is ready to the goroutine that waits for the signal.
func acceptHeirs(s *Server, listener *net.UnixListener, met *atomic.Pointer[heir]) {
	for {
		conn, err := listener.AcceptUnix()
		if err != nil {
			return
		}
		h := &heir{UnixConn: conn, lines: bufio.NewReader(conn)}
		met.Store(h)
		isReady := s.meetHeir(h)
		met.Store(nil)
		if isReady {
			select {
			case s.heirs <- h:
				continue
			default: // another heir is ready
			}
		}
		_ = h.Close()
	}
}

// meetHeir sends an heir the maps to load, and reports whether it has loaded them. The file of the
// socket may be open to other users, so meetHeir checks the user.
func (s *Server) meetHeir(h *heir) (isReady bool) {
	raw, err := h.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			cred, failed := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
			if err = failed; err == nil && int(cred.Uid) != os.Geteuid() {
				err = fmt.Errorf("an heir is of user %d", cred.Uid)
			}
		})
	}
	maps := []string{}
	for _, r := range (shown{s}).rooms() {
		title := r.title.Load()
		var name wire.MapName
		for i := range name {
			name[i] = byte(title >> (8 * i))
		}
		maps = append(maps, string(name.Text()))
	}
	line, failed := json.Marshal(maps)
	if err = errors.Join(err, failed); err == nil {
		_, err = h.Write(append(line, '\n'))
	}
	if err == nil {
		err = h.SetReadDeadline(time.Now().Add(heirTime))
	}
	ready := ""
	if err == nil {
		ready, err = h.read()
	}
	return err == nil && ready == "ready" && s.serving.Load()
}

// handOver stops the server, and lets the heir play. It returns false if the server must play on.
func (s *Server) handOver(h *heir) bool {
	defer h.Close()
	s.stop()
	for i, r := range s.rooms {
		r.settle(s.workers[i%len(s.workers)])
	}
	for range s.keeper.images {
		s.keeper.writeImage()
	}
	s.keeper.writeScores()
	err := s.checkpoints.Close()
	s.checkpoints = nil
	if err = errors.Join(err, s.shut()); err == nil {
		err = s.socket.Pass(h.UnixConn, "go\n")
	}
	said := ""
	if err == nil {
		err = h.SetReadDeadline(time.Now().Add(heirTime))
	}
	if err == nil {
		if said, err = h.read(); said == "plays" {
			return true
		}
	}
	if said != "" {
		err = errors.New(said)
	}
	s.say(fmt.Errorf("the other process doesn't take over: %w", err))
	err = s.open()
	if errors.Is(err, syscall.EWOULDBLOCK) { // it has the checkpoints, so it plays
		s.say(err)
		return true
	}
	for _, r := range s.rooms {
		for _, p := range []*play{r.play, r.next.Load()} {
			if err == nil && p != nil {
				p.checkpoint, err = s.checkpoints.Attach(r.number, p.level.Snapshots)
			}
		}
	}
	if err != nil {
		s.broken(err)
	}
	s.start()
	s.serving.Store(true)
	s.say(errors.New("plays on"))
	return false
}

// settle obeys the messages that wait for the room, and makes its state the checkpoint.
func (r *room) settle(w *worker) {
	r.read(w, r.s.now())
	if r.play != nil {
		r.checkpoint()
	}
}

// callServer asks the server that has the checkpoints for its maps. It returns nil if none runs.
func (s *Server) callServer(ctx context.Context) (*heir, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: s.o.Checkpoints + ".sock", Net: "unix"})
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
		s.say(fmt.Errorf("-upgrade: no server has %s: this one starts without", s.o.Checkpoints))
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("-upgrade: %w", err)
	}
	h := &heir{UnixConn: conn, lines: bufio.NewReader(conn)}
	h.stop = context.AfterFunc(ctx, func() { conn.Close() })
	line, err := h.read()
	if err == nil {
		err = json.Unmarshal([]byte(line), &h.maps)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("-upgrade: the server says %q: %w", line, err), conn.Close())
	}
	if len(h.maps) > s.o.Rooms { // the server plays on without a pause
		return nil, errors.Join(fmt.Errorf("-upgrade: the server has %d rooms: raise -rooms to at least that from %d",
			len(h.maps), s.o.Rooms), conn.Close())
	}
	return h, nil
}

// inherit loads the server's maps, and then gets the socket of the server, which has stopped.
func (s *Server) inherit() (err error) {
	for i, r := range s.rooms[:min(len(s.rooms), len(s.server.maps))] {
		m, err := s.loader.named(wire.MakeMapName(s.server.maps[i]))
		if err == nil {
			r.spare, err = s.loader.level(r, m)
		}
		if err != nil {
			return fmt.Errorf("-upgrade: room %d: %w", i, err)
		}
	}
	if _, err = s.server.Write([]byte("ready\n")); err == nil {
		s.socket, err = udp.Receive(s.server.UnixConn, s.o.Buffer)
	}
	if err != nil {
		return fmt.Errorf("-upgrade: %w", err)
	}
	return nil
}

// answer reports to the server whether this process plays. After an error all files are closed.
func (h *heir) answer(err error) {
	text := "plays"
	if err != nil {
		text = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	h.stop()
	_, _ = h.Write([]byte(text + "\n")) // it may be gone
	_ = h.Close()
}

package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// Replay is a record that was read into memory and checked.
type Replay struct {
	Head  RecordHead
	State []byte // before the first tick, or empty
	Ticks int    // the number of whole ticks
	Torn  int    // bytes after them, of a tick that a crash cut off

	ticks []byte
}

// OpenReplay reads a record into the Go heap. For damage before a whole tick it returns an error
// that names the byte. It also refuses more than [RecordMost] bytes.
func OpenReplay(name string) (*Replay, error) {
	data, err := readFile(name, "record", RecordMost)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r, err := parseReplay(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// readFile reads a file of at most most bytes. It checks the size before it allocates. Errors name
// the kind of file.
func readFile(name, what string, most int64) ([]byte, error) {
	info, err := os.Stat(name) // first, since opening a pipe would wait for a writer
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it isn't a regular file")
	case info.Size() > most:
		return nil, tooLarge(info.Size(), what, most)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data := make([]byte, info.Size())
	_, err = io.ReadFull(file, data)
	return data, err
}

// Inputs returns the inputs of the i-th tick, 12 bytes for each player.
func (r *Replay) Inputs(i int) []byte {
	tick := r.tick(i)
	return tick[:len(tick)-4]
}

func parseReplay(data []byte) (*Replay, error) {
	head, err := checkHeader(data, recordHeader, recordMagic, recordVersion)
	if err != nil {
		return nil, err
	}
	r := &Replay{Head: RecordHead{Room: binary.LittleEndian.Uint32(head[12:]),
		Epoch: binary.LittleEndian.Uint32(head[16:]), Players: binary.LittleEndian.Uint32(head[20:]),
		Seed: binary.LittleEndian.Uint64(head[24:]), FirstTick: binary.LittleEndian.Uint32(head[32:]),
		Map: [8]byte(head[40:]), MapSum: binary.LittleEndian.Uint64(head[56:])}}
	rest := data[recordHeader:]
	size := binary.LittleEndian.Uint64(head[48:])
	switch {
	case r.Head.Room >= roomsMost:
		return nil, bad(12, "it is of room %d of at most %d rooms", r.Head.Room, roomsMost)
	case r.Head.Players < 1 || r.Head.Players > playersMost:
		return nil, bad(20, "%d players; 1 to %d", r.Head.Players, playersMost)
	case size > uint64(len(rest)):
		return nil, bad(len(data), "the file ends within the state of %d bytes", size)
	case size == 0 && r.Head.FirstTick != 0:
		return nil, bad(32, "it begins with tick %d, but without a state", r.Head.FirstTick)
	case !isZero(head[64:68]):
		return nil, bad(64, "unused bytes are not zero")
	}
	r.State, r.ticks = rest[:size], rest[size:]
	if binary.LittleEndian.Uint32(head[36:]) != sum(r.State) {
		return nil, bad(36, "the checksum of the state should be %#x", sum(r.State))
	}
	if err := r.count(len(data) - len(r.ticks)); err != nil {
		return nil, err
	}
	return r, nil
}

// count counts the whole ticks, which start at byte start of the file.
func (r *Replay) count(start int) error {
	size := TickSize(int(r.Head.Players))
	first := -1 // the first damaged tick
	for i := range len(r.ticks) / size {
		switch whole := r.isWhole(i); {
		case whole && first >= 0:
			return bad(start+first*size, "tick %d is damaged, and tick %d is not",
				r.Head.FirstTick+uint32(first), r.Head.FirstTick+uint32(i))
		case whole:
			r.Ticks = i + 1
		case first < 0:
			first = i
		}
	}
	r.Torn = len(r.ticks) - r.Ticks*size
	return nil
}

func (r *Replay) tick(i int) []byte {
	size := TickSize(int(r.Head.Players))
	return r.ticks[i*size : (i+1)*size]
}

func (r *Replay) isWhole(i int) bool {
	tick := append([]byte(nil), r.tick(i)...)
	was := binary.LittleEndian.Uint32(tick[len(tick)-4:])
	putTickSum(tick, r.Head.FirstTick+uint32(i))
	return binary.LittleEndian.Uint32(tick[len(tick)-4:]) == was
}

package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Saves holds the last states of a server's rooms, in a folder that only one server uses at a time.
// A room has two files, written in turn, each whole or absent. A room is for one goroutine at a
// time; different goroutines may use different rooms.
type Saves struct {
	lock   *os.File
	folder folder
	rooms  []saveFiles
}

// SaveHead is the header of a save. It is plain data, and may be in a budget.
type SaveHead struct {
	Serial      uint64 // of the room's saves, from 1; set by Write
	Seed        uint64
	Tick, Epoch uint32
	Map         [8]byte
	MapSum      uint64       // doom.Level.Sum
	Names       [16][16]byte // of players, by place
}

// saveFiles holds the two files of a room.
type saveFiles struct {
	room   int
	files  [2]entry
	newest int    // the index of the newest whole save, if any
	serial uint64 // of the newest, or 0

	header [saveHeader]byte // a field, since a variable would escape to the heap
}

const (
	saveMagic   = "frogsave"
	saveVersion = 2
	saveHeader  = 512
)

// SaveMost is the largest size of a save with its header, in bytes.
const SaveMost = 16 << 20

// OpenSaves opens the saves of that many rooms. It creates the folder if it is missing; Write
// creates a room's files. It fails if another server uses the folder; only Linux, macOS and the
// BSDs detect that.
func OpenSaves(dir string, rooms int) (*Saves, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	s := &Saves{lock: lock, rooms: make([]saveFiles, rooms)}
	if err = lockFile(lock); err == nil {
		s.folder, err = openFolder(dir)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	for room := range s.rooms {
		r := &s.rooms[room]
		r.room = room
		for i, end := range [...]string{"a", "b"} {
			r.files[i] = s.folder.entry(fmt.Sprintf("room-%02d.%s", room, end))
		}
		r.newest = 1          // so that a is written first
		_, _, _, _ = r.read() // finds the newest; Read reports damage
	}
	return s, nil
}

// Write saves a room; file is the output of save.Ring.AppendFile. When Write returns, the save is
// on the disk. After an error, such as more than [SaveMost] bytes, Read returns the save before.
// Cost: two syncs of the disk, on Linux without a Go allocation.
func (s *Saves) Write(room int, h *SaveHead, file []byte) error {
	r := &s.rooms[room]
	to := 1 - r.newest
	if len(file) > SaveMost-saveHeader {
		return fmt.Errorf("%s: %w", r.files[to].path,
			tooLarge(int64(saveHeader+len(file)), "save", SaveMost))
	}
	h.Serial = r.serial + 1
	h.put(r.header[:], r.room, file)
	if err := s.folder.replace(&r.files[to], r.header[:], file); err != nil {
		return err
	}
	r.newest, r.serial = to, h.Serial
	return nil
}

// Read returns the newer whole save of a room. found is false if the room has no save. Damage or a
// size over [SaveMost] is an error only if no whole save is left. Cost: two reads into the Go heap.
func (s *Saves) Read(room int) (h SaveHead, file []byte, found bool, err error) {
	return s.rooms[room].read()
}

func (r *saveFiles) read() (h SaveHead, file []byte, found bool, err error) {
	var damage []error
	for i := range r.files {
		name := r.files[i].path
		head, data, whole, err := readSave(name, r.room)
		switch {
		case err != nil:
			damage = append(damage, fmt.Errorf("%s: %w", name, err))
		case whole && (!found || head.Serial > h.Serial):
			h, file, found = head, data, true
			r.newest, r.serial = i, head.Serial
		}
	}
	switch {
	case found || damage == nil:
		return h, file, found, nil
	case len(damage) == 1:
		return h, nil, false, damage[0]
	}
	return h, nil, false, fmt.Errorf("%w; %w", damage[0], damage[1])
}

// Close unlocks the folder for another server.
func (s *Saves) Close() error {
	return errors.Join(s.folder.close(), s.lock.Close())
}

func (h *SaveHead) put(to []byte, room int, file []byte) {
	clear(to)
	copy(to, saveMagic)
	binary.LittleEndian.PutUint32(to[8:], saveVersion)
	binary.LittleEndian.PutUint32(to[12:], uint32(room))
	binary.LittleEndian.PutUint64(to[16:], h.Serial)
	binary.LittleEndian.PutUint32(to[24:], h.Tick)
	binary.LittleEndian.PutUint32(to[28:], h.Epoch)
	binary.LittleEndian.PutUint64(to[32:], h.Seed)
	binary.LittleEndian.PutUint64(to[40:], uint64(len(file)))
	binary.LittleEndian.PutUint32(to[48:], sum(file))
	copy(to[56:], h.Map[:])
	for i := range h.Names {
		copy(to[64+16*i:], h.Names[i][:])
	}
	binary.LittleEndian.PutUint64(to[320:], h.MapSum)
	putSum(to[:saveHeader])
}

func readSave(name string, room int) (h SaveHead, file []byte, whole bool, err error) {
	data, err := readFile(name, "save", SaveMost)
	if errors.Is(err, os.ErrNotExist) {
		return h, nil, false, nil
	}
	if err != nil {
		return h, nil, false, err
	}
	return parseSave(data, room)
}

// parseSave parses a save. A file with a header of zeros, or an empty one, is neither whole nor an
// error: an earlier version of this program wrote the header last.
func parseSave(data []byte, room int) (h SaveHead, file []byte, whole bool, err error) {
	if isZero(data[:min(len(data), saveHeader)]) {
		return h, nil, false, nil
	}
	head, err := checkHeader(data, saveHeader, saveMagic, saveVersion)
	if err != nil {
		return h, nil, false, err
	}
	file = data[saveHeader:]
	switch of, size := binary.LittleEndian.Uint32(head[12:]), binary.LittleEndian.Uint64(head[40:]); {
	case of != uint32(room):
		err = bad(12, "it is of room %d", of)
	case size != uint64(len(file)):
		err = bad(40, "%d bytes follow the header, not %d", len(file), size)
	case binary.LittleEndian.Uint32(head[48:]) != sum(file):
		err = bad(48, "the checksum of the bytes after the header should be %#x", sum(file))
	case !isZero(head[52:56]) || !isZero(head[328:508]):
		err = bad(52, "unused bytes are not zero, here or from byte 328 on")
	}
	if err != nil {
		return h, nil, false, err
	}
	h = SaveHead{Serial: binary.LittleEndian.Uint64(head[16:]),
		Tick: binary.LittleEndian.Uint32(head[24:]), Epoch: binary.LittleEndian.Uint32(head[28:]),
		Seed: binary.LittleEndian.Uint64(head[32:]), Map: [8]byte(head[56:]),
		MapSum: binary.LittleEndian.Uint64(head[320:])}
	for i := range h.Names {
		h.Names[i] = [16]byte(head[64+16*i:])
	}
	return h, file, true, nil
}

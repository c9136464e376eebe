package disk

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Record writes the inputs of an epoch of a room. It is for one goroutine at a time.
type Record struct {
	file    *os.File
	size    int64
	players int
	tick    uint32 // the next one
	err     error  // the first error of Append
}

// RecordHead is the header of a record. It is plain data.
type RecordHead struct {
	Room, Epoch uint32
	Seed        uint64
	Players     uint32
	FirstTick   uint32 // 0 without a state
	Map         [8]byte
	MapSum      uint64 // doom.Level.Sum
}

const (
	recordMagic   = "froginpt"
	recordVersion = 2
	recordHeader  = 72
	inputSize     = 12
	playersMost   = 256
	roomsMost     = 256
)

// RecordMost is the largest size of a record, in bytes: ten hours of 16 players.
const RecordMost = 256 << 20

// TickSize returns the size of a tick in a record, in bytes.
func TickSize(players int) int { return players*inputSize + 4 }

// CreateRecord creates the file of an epoch, and fails if the file exists. state is the state
// before the first tick, by save.Ring.AppendFile, or empty; it has at most [SaveMost] bytes. The
// file gets its name after the header and the state are written, so that a crash of the program
// leaves no record without them.
func CreateRecord(dir string, h *RecordHead, state []byte) (*Record, error) {
	if h.Players < 1 || h.Players > playersMost {
		return nil, fmt.Errorf("a record is of 1 to %d players, not %d", playersMost, h.Players)
	}
	if h.Room >= roomsMost {
		return nil, fmt.Errorf("a record is of one of %d rooms, not %d", roomsMost, h.Room)
	}
	if h.FirstTick != 0 && len(state) == 0 {
		return nil, fmt.Errorf("a record from tick %d on needs the state before it", h.FirstTick)
	}
	if len(state) > SaveMost {
		return nil, tooLarge(int64(len(state)), "state", SaveMost)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	name := filepath.Join(dir, recordName(h.Room, h.Epoch))
	if _, err := os.Lstat(name); err == nil {
		return nil, fmt.Errorf("%s: %w", name, os.ErrExist)
	}
	if err := begin(name+".new", h, state); err != nil {
		return nil, err
	}
	if err := os.Rename(name+".new", name); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	return &Record{file: file, size: recordHeader + int64(len(state)), players: int(h.Players),
		tick: h.FirstTick}, nil
}

func begin(name string, h *RecordHead, state []byte) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = file.Write(append(h.header(state), state...))
	return errors.Join(err, file.Close())
}

func (h *RecordHead) header(state []byte) []byte {
	to := make([]byte, recordHeader)
	copy(to, recordMagic)
	binary.LittleEndian.PutUint32(to[8:], recordVersion)
	binary.LittleEndian.PutUint32(to[12:], h.Room)
	binary.LittleEndian.PutUint32(to[16:], h.Epoch)
	binary.LittleEndian.PutUint32(to[20:], h.Players)
	binary.LittleEndian.PutUint64(to[24:], h.Seed)
	binary.LittleEndian.PutUint32(to[32:], h.FirstTick)
	binary.LittleEndian.PutUint32(to[36:], sum(state))
	copy(to[40:], h.Map[:])
	binary.LittleEndian.PutUint64(to[48:], uint64(len(state)))
	binary.LittleEndian.PutUint64(to[56:], h.MapSum)
	putSum(to)
	return to
}

// Append appends the next ticks, [TickSize] bytes each: the players' inputs, and four bytes for the
// sum, which Append fills. The first error, such as a full disk or more than [RecordMost] bytes,
// ends the record: every further call returns it, since later ticks would be useless. Cost: a
// write, without a Go allocation.
func (r *Record) Append(ticks []byte) error {
	size := TickSize(r.players)
	if r.err == nil && len(ticks)%size != 0 {
		r.err = fmt.Errorf("%s: %d bytes are no ticks of %d players, %d bytes each", r.file.Name(),
			len(ticks), r.players, size)
	}
	if size := r.size + int64(len(ticks)); r.err == nil && size > RecordMost {
		r.err = fmt.Errorf("%s: %w; it ends here", r.file.Name(), tooLarge(size, "record", RecordMost))
	}
	if r.err != nil {
		return r.err
	}
	for at := 0; at < len(ticks); at += size {
		putTickSum(ticks[at:at+size], r.tick)
		r.tick++
	}
	if _, r.err = r.file.WriteAt(ticks, r.size); r.err == nil {
		r.size += int64(len(ticks))
	}
	return r.err
}

// putTickSum sets the sum at the end of a tick. It is the sum of the tick's inputs, and of its
// number in the sum's place.
func putTickSum(tick []byte, number uint32) {
	last := tick[len(tick)-4:]
	binary.LittleEndian.PutUint32(last, number)
	binary.LittleEndian.PutUint32(last, sum(tick))
}

// Sync returns once all appended ticks are on the disk.
func (r *Record) Sync() error { return r.file.Sync() }

// Close closes the file. It returns the first error of Append, if any, and its own.
func (r *Record) Close() error { return errors.Join(r.err, r.file.Close()) }

// Remove closes and removes the file, for an epoch that wasn't played.
func (r *Record) Remove() error { return errors.Join(r.file.Close(), os.Remove(r.file.Name())) }

func recordName(room, epoch uint32) string {
	return fmt.Sprintf("room-%02d-%04d.inputs", room, epoch)
}

// RecordFile is the name of a record in a folder.
type RecordFile struct {
	Room, Epoch uint32
	Name        string // includes the folder
}

// NextEpoch returns the epoch after a room's last record, so that no record is overwritten. Without
// records, or without the folder, it returns 0.
func NextEpoch(dir string, room uint32) (epoch uint32, err error) {
	list, err := Records(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	for _, r := range list {
		if r.Room == room {
			epoch = r.Epoch + 1
		}
	}
	return epoch, nil
}

// Records returns the records of a folder, by room and epoch.
func Records(dir string) ([]RecordFile, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []RecordFile
	for _, e := range entries {
		var r RecordFile
		if !strings.HasSuffix(e.Name(), ".inputs") {
			continue
		}
		if _, err := fmt.Sscanf(e.Name(), "room-%d-%d.inputs", &r.Room, &r.Epoch); err != nil {
			continue
		}
		if recordName(r.Room, r.Epoch) == e.Name() {
			r.Name = filepath.Join(dir, e.Name())
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b RecordFile) int {
		return cmp.Or(cmp.Compare(a.Room, b.Room), cmp.Compare(a.Epoch, b.Epoch))
	})
	return list, nil
}

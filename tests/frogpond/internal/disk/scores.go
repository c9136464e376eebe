package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// Scores is an open file of scores to append to. It is for one goroutine at a time.
type Scores struct {
	file   *os.File
	size   int64
	buffer [64 * scoreSize]byte
}

// Score is a player's result so far in an epoch of a room; the last score counts. It is plain data.
type Score struct {
	Seconds               int64 // since 1970
	Name                  [16]byte
	Map                   [8]byte
	Room, Epoch           uint32
	Player                uint32 // the place in the room
	Ticks                 uint32 // of the epoch, so far
	Caught, Deaths, Exits uint32
	_                     [4]byte
}

const (
	scoreMagic = "FSC1" // the digit is the version
	scoreSize  = 64
	// A crash leaves at most this much. A file with a longer tail isn't a file of scores.
	tornMost = 1024 * scoreSize
)

// OpenScores opens or creates a file of scores. It cuts off the torn scores that a crash left at
// the end; cut is their size in bytes. If the file is damaged or isn't of scores, it returns an
// error and leaves the file unchanged. It also fails if another server uses the file, as
// [OpenSaves] does. Cost: reads the whole file, in 64 KiB of memory.
func OpenScores(name string) (s *Scores, cut int, err error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, 0, err
	}
	if err = lockFile(file); err == nil {
		s, cut, err = openScores(file)
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return s, cut, nil
}

func openScores(file *os.File) (s *Scores, cut int, err error) {
	whole, torn, err := scanFile(file, func(*Score) error { return nil })
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", file.Name(), err)
	}
	s = &Scores{file: file, size: whole}
	if torn != 0 {
		err = file.Truncate(s.size)
	}
	return s, torn, err
}

// Append appends scores. After an error the file has none of them, and a retry is safe. The scores
// are on the disk after [Scores.Sync]. Cost: a write for each 64 scores, without a Go allocation.
func (s *Scores) Append(records []Score) error {
	at := s.size
	for len(records) > 0 {
		n := min(len(records), len(s.buffer)/scoreSize)
		for i := range records[:n] {
			records[i].put(s.buffer[i*scoreSize : (i+1)*scoreSize])
		}
		if _, err := s.file.WriteAt(s.buffer[:n*scoreSize], at); err != nil {
			return err
		}
		at += int64(n * scoreSize)
		records = records[n:]
	}
	s.size = at
	return nil
}

// Sync returns once all appended scores are on the disk.
func (s *Scores) Sync() error { return s.file.Sync() }

// Close closes the file.
func (s *Scores) Close() error { return s.file.Close() }

// ReadScores calls each with the scores of a file, in order, and returns the number of torn bytes
// at its end. An error of each ends the call and is returned. Damage is an error that names its
// first byte, after the calls for all whole scores. Cost: 64 KiB of memory for a file of any size.
func ReadScores(name string, each func(*Score) error) (torn int, err error) {
	file, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if _, torn, err = scanFile(file, each); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return torn, err
}

func (c *Score) put(to []byte) {
	clear(to)
	copy(to, scoreMagic)
	binary.LittleEndian.PutUint16(to[4:], uint16(c.Room))
	binary.LittleEndian.PutUint16(to[6:], uint16(c.Player))
	binary.LittleEndian.PutUint64(to[8:], uint64(c.Seconds))
	copy(to[16:], c.Name[:])
	copy(to[32:], c.Map[:])
	for i, n := range [...]uint32{c.Epoch, c.Ticks, c.Caught, c.Deaths, c.Exits} {
		binary.LittleEndian.PutUint32(to[40+4*i:], n)
	}
	putSum(to)
}

// scanFile calls scan with the file up to its size, since a device may have no end.
func scanFile(file *os.File, each func(*Score) error) (whole int64, torn int, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, 0, err
	}
	return scan(io.LimitReader(file, info.Size()), each)
}

// scan reads scores to the end and calls each with the whole ones. whole is the end of the last
// whole score, and torn the number of bytes after it. If more than tornMost bytes in a row have no
// whole score, scan stops with an error.
func scan(rd io.Reader, each func(*Score) error) (whole int64, torn int, err error) {
	buffer := make([]byte, tornMost)
	first := int64(-1) // the first damaged score
	for at, more := int64(0), true; more; {
		n, err := io.ReadFull(rd, buffer)
		if more = err == nil; !more && err != io.EOF && err != io.ErrUnexpectedEOF {
			return whole, 0, err
		}
		if n := min(n, len(scoreMagic)); at == 0 && string(buffer[:n]) != scoreMagic[:n] &&
			!isZero(buffer[:n]) {
			return 0, 0, bad(0, "it starts with %q, not with %q", buffer[:n], scoreMagic)
		}
		for i := 0; i+scoreSize <= n; i += scoreSize {
			c, ok := parseScore(buffer[i : i+scoreSize])
			if !ok {
				if first < 0 {
					first = at + int64(i)
				}
				continue
			}
			whole = at + int64(i+scoreSize)
			if err := each(&c); err != nil {
				return whole, 0, err
			}
		}
		if at += int64(n); at-whole > tornMost {
			return whole, 0, bad(int(whole), "more than %d bytes from here on hold no whole score",
				tornMost)
		}
		torn = int(at - whole)
	}
	if first >= 0 && first < whole {
		return whole, torn, bad(int(first), "a score is damaged, and others after it are not")
	}
	return whole, torn, nil
}

func parseScore(b []byte) (c Score, ok bool) {
	if string(b[:len(scoreMagic)]) != scoreMagic || !isSummed(b) {
		return c, false
	}
	c = Score{Seconds: int64(binary.LittleEndian.Uint64(b[8:])), Name: [16]byte(b[16:]),
		Map: [8]byte(b[32:]), Room: uint32(binary.LittleEndian.Uint16(b[4:])),
		Player: uint32(binary.LittleEndian.Uint16(b[6:]))}
	for i, to := range [...]*uint32{&c.Epoch, &c.Ticks, &c.Caught, &c.Deaths, &c.Exits} {
		*to = binary.LittleEndian.Uint32(b[40+4*i:])
	}
	return c, true
}

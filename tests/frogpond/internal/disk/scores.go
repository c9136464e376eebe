package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// Scores is a file that scores are appended to. One goroutine at a time has it.
type Scores struct {
	file   *os.File
	size   int64
	buffer [64 * scoreSize]byte
}

// Score is what a player came to in an epoch of a room, by then: the last of these counts. It is
// plain data.
type Score struct {
	Seconds               int64 // since 1970
	Name                  [16]byte
	Map                   [8]byte
	Room, Epoch           uint32
	Player                uint32 // its place in the room
	Ticks                 uint32 // of the epoch, by then
	Caught, Deaths, Exits uint32
	_                     [4]byte
}

const (
	scoreMagic = "FSC1" // the digit is the version
	scoreSize  = 64
	tornMost   = 1024 * scoreSize // that a crash can leave; with more, it is no file of scores
)

// OpenScores opens a file of scores, or makes it. What a crash left at its end of scores that are
// not whole is cut off: so many bytes. A file that is damaged, or is none, is an error, and left
// alone. No other server may have it, as with [OpenSaves]. Cost: a look at the file, with memory of
// 64 KiB, whatever it has.
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

// Append appends scores. After an error none of them was, and it can be tried again. They are on
// the disk after [Scores.Sync]. Cost: a write for each 64; no Go allocation.
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

// Sync waits until what was appended is on the disk.
func (s *Scores) Sync() error { return s.file.Sync() }

// Close closes the file.
func (s *Scores) Close() error { return s.file.Close() }

// ReadScores calls each with the scores of a file, in their order, and says how many bytes at its
// end are torn. An error is that of each, which ends it, or names the first byte of a score that is
// damaged; those that are whole come all the same. Cost: memory of 64 KiB, whatever the file has.
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

// scanFile is scan of as much as a file says that it has: a device may have no end.
func scanFile(file *os.File, each func(*Score) error) (whole int64, torn int, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, 0, err
	}
	return scan(io.LimitReader(file, info.Size()), each)
}

// scan reads scores to the end, some at once, and calls each with those that are whole. whole is
// where the last of these ends, and torn how many bytes follow: with more than a crash leaves it is
// no file of scores, and isn't read further.
func scan(rd io.Reader, each func(*Score) error) (whole int64, torn int, err error) {
	buffer := make([]byte, tornMost)
	first := int64(-1) // that is not whole
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
			return whole, 0, bad(int(whole), "no score is whole in more than %d bytes from here on",
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

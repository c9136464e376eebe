package work

import (
	"bytes"
	"strconv"
)

// The limits of the program lines.
const (
	LinesSize = 30_000_000 // about the bytes of all lines
	BlockSize = 8192       // bytes that Lines.Next returns, at most
	Users     = 30_000     // different users, at most
	Tags      = 8_000      // different tags, at most
	KeySize   = 24         // bytes of a user or a tag, at most
	TagsOfOne = 8          // tags in a line, at most
	Top       = 10         // rows that are printed of each table

	lineSize = 256 // at most
)

// Lines is a stream of JSON lines, such as
//
//	{"user":"kajflbmni","item":4711,"tags":["okjfa","cblhg"],"amount":1234,"note":"nobdaic"}
type Lines struct {
	dice  dice
	made  int
	block [BlockSize]byte
}

// Next returns a block of whole lines, or nil after the last block. It is valid until the next
// call.
func (l *Lines) Next() []byte {
	if l.made >= LinesSize {
		return nil
	}
	b := l.block[:0]
	for len(b) <= BlockSize-lineSize {
		b = l.line(b)
	}
	l.made += len(b)
	return b
}

// line appends a line. Some users and tags come more often than others.
func (l *Lines) line(b []byte) []byte {
	v := l.dice.next()
	user := uint64(l.dice.below(1 + l.dice.below(Users)))
	b = appendText(append(b, `{"user":`...), user, 6, KeySize)
	b = strconv.AppendUint(append(b, `,"item":`...), v>>48, 10)
	b = append(b, `,"tags":[`...)
	tags := v % (TagsOfOne + 1)
	for i := range tags {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, 1<<32+uint64(l.dice.below(1+l.dice.below(Tags))), 3, 12)
	}
	b = strconv.AppendUint(append(b, `],"amount":`...), v>>16%100_000, 10)
	b = appendText(append(b, `,"note":`...), v, 0, 8)
	return append(b, "}\n"...)
}

func appendText(b []byte, seed uint64, least, most int) []byte {
	at := len(b)
	b = appendWord(b, seed, least, most)
	b[at] = '"'
	return append(b, '"')
}

// Record has the fields of a line that the program reads, as slices of the line.
type Record struct {
	User   []byte
	Amount int64
	tags   [TagsOfOne][]byte
	n      int
}

// Tags returns the line's tags. A tag may come more than once.
func (r *Record) Tags() [][]byte { return r.tags[:r.n] }

// Scan reads the first line of a block and returns the rest of the block. It doesn't check its
// input, which comes from Lines.
func (r *Record) Scan(block []byte) (rest []byte) {
	r.n = 0
	for block[0] != '\n' { // each round is a field: {"key":value or ,"key":value
		key := text(block[1:])
		block = block[len(key)+4:]
		switch {
		case block[0] == '"':
			value := text(block)
			block = block[len(value)+2:]
			if string(key) == "user" {
				r.User = value
			}
		case block[0] == '[':
			for block[0] != ']' && block[1] != ']' {
				tag := text(block[1:])
				r.tags[r.n] = tag
				r.n++
				block = block[len(tag)+3:]
			}
			if block[0] == '[' {
				block = block[1:]
			}
			block = block[1:]
		default:
			var n int64
			for ; block[0]-'0' <= 9; block = block[1:] {
				n = n*10 + int64(block[0]-'0')
			}
			if string(key) == "amount" {
				r.Amount = n
			}
		}
		if block[0] == '}' {
			block = block[1:]
		}
	}
	return block[1:]
}

// text returns the text that b begins with, without its quotes.
func text(b []byte) []byte {
	n := 1 + bytes.IndexByte(b[1:], '"')
	return b[1:n:n]
}

// AppendRow appends a row of a table as it is printed.
func AppendRow(b, key []byte, total int64, count uint32) []byte {
	b = append(append(b, key...), ' ')
	b = append(strconv.AppendInt(b, total, 10), ' ')
	return append(strconv.AppendUint(b, uint64(count), 10), '\n')
}

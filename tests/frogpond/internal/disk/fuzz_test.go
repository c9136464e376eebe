package disk

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// The readers take any bytes: they refuse them, or a writer writes the same bytes again. Each input
// is read unchanged, and also with correct sums, because a fuzzer can't guess these.

func FuzzSave(f *testing.F) {
	h := head()
	data := append(make([]byte, saveHeader), file(7, 40)...)
	h.put(data[:saveHeader], 1, data[saveHeader:])
	f.Add(data)
	f.Add(data[:saveHeader+3])
	f.Add(make([]byte, 600))
	f.Fuzz(func(t *testing.T, data []byte) {
		data = bytes.Clone(data)
		for range 2 {
			h, file, whole, err := parseSave(data, 1)
			require.False(t, whole && err != nil)
			if whole {
				again := make([]byte, saveHeader)
				h.put(again, 1, file)
				require.Equal(t, data, append(again, file...))
			}
			if len(data) >= saveHeader {
				binary.LittleEndian.PutUint32(data[48:], sum(data[saveHeader:]))
				putSum(data[:saveHeader])
			}
		}
	})
}

func FuzzRecord(f *testing.F) {
	for _, state := range [][]byte{nil, file(5, 20)} {
		data := append(recordOf(2).header(state), state...)
		for i := range uint32(3) {
			tick := file(byte(i), TickSize(2))
			putTickSum(tick, i)
			data = append(data, tick...)
		}
		f.Add(data)
		f.Add(data[:len(data)-1])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = bytes.Clone(data)
		for range 2 {
			if r, err := parseReplay(data); err == nil {
				again := append(r.Head.header(r.State), r.State...)
				for i := range r.Ticks {
					tick := append(bytes.Clone(r.Inputs(i)), 0, 0, 0, 0)
					putTickSum(tick, r.Head.FirstTick+uint32(i))
					again = append(again, tick...)
				}
				require.Equal(t, data[:len(data)-r.Torn], again)
			}
			rightSums(data)
		}
	})
}

func rightSums(data []byte) {
	if len(data) < recordHeader {
		return
	}
	rest := data[recordHeader:]
	if size := binary.LittleEndian.Uint64(data[48:]); size <= uint64(len(rest)) {
		binary.LittleEndian.PutUint32(data[36:], sum(rest[:size]))
		rest = rest[size:]
	}
	putSum(data[:recordHeader])
	size := TickSize(int(binary.LittleEndian.Uint32(data[20:]) % (playersMost + 1)))
	for tick := binary.LittleEndian.Uint32(data[32:]); len(rest) >= size; tick++ {
		putTickSum(rest[:size], tick)
		rest = rest[size:]
	}
}

func FuzzScores(f *testing.F) {
	data := scoresFile(someScores(3))
	f.Add(data)
	f.Add(data[:100])
	f.Fuzz(func(t *testing.T, data []byte) {
		data = bytes.Clone(data)
		for range 2 {
			if list, torn, err := parseScores(data); err == nil {
				require.True(t, bytes.Equal(data[:len(data)-torn], scoresFile(list)))
			}
			for at := 0; at+scoreSize <= len(data); at += scoreSize {
				putSum(data[at : at+scoreSize])
			}
		}
	})
}

func FuzzDemo(f *testing.F) {
	data := demo(f)
	f.Add(data)
	f.Add(data[:len(data)-1])
	f.Fuzz(func(t *testing.T, data []byte) {
		data = bytes.Clone(data)
		for range 2 {
			var h DemoHead
			read, err := ReadDemo(bytes.NewReader(data), make([]byte, 1<<10),
				func(head *DemoHead) error { h = *head; return nil })
			if err == nil {
				var again bytes.Buffer
				require.NoError(t, WriteDemo(&again, &h, read))
				require.True(t, bytes.HasPrefix(data, again.Bytes()))
			}
			if len(data) >= demoHeader {
				putSum(data[:demoHeader])
			}
		}
	})
}

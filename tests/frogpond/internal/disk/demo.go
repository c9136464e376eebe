package disk

import (
	"encoding/binary"
	"io"
)

// DemoHead is the header of a demo.
type DemoHead struct {
	Players uint32
	Seed    uint64
	Map     [8]byte
	MapSum  uint64 // doom.Level.Sum
	Ticks   uint64
}

const (
	demoMagic   = "frogdemo"
	demoVersion = 1
	demoHeader  = 64
)

// WriteDemo writes a demo. inputs holds 12 bytes for each player in each tick.
func WriteDemo(w io.Writer, h *DemoHead, inputs []byte) error {
	to := make([]byte, demoHeader)
	copy(to, demoMagic)
	binary.LittleEndian.PutUint32(to[8:], demoVersion)
	binary.LittleEndian.PutUint32(to[12:], h.Players)
	binary.LittleEndian.PutUint64(to[16:], h.Seed)
	copy(to[24:], h.Map[:])
	binary.LittleEndian.PutUint64(to[32:], h.MapSum)
	binary.LittleEndian.PutUint64(to[40:], h.Ticks)
	putSum(to)
	if _, err := w.Write(to); err != nil {
		return err
	}
	_, err := w.Write(inputs)
	return err
}

// ReadDemo reads the ticks of a demo into inputs, as many as fit, and returns the part that it
// filled. It calls check with the header first. Its memory doesn't depend on the file's sizes. It
// returns an error of check or rd, or for damage one that names the byte.
func ReadDemo(rd io.Reader, inputs []byte, check func(*DemoHead) error) (read []byte, err error) {
	var first [demoHeader]byte
	n, err := io.ReadFull(rd, first[:])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	head, err := checkHeader(first[:n], demoHeader, demoMagic, demoVersion)
	if err != nil {
		return nil, err
	}
	h := DemoHead{Players: binary.LittleEndian.Uint32(head[12:]),
		Seed: binary.LittleEndian.Uint64(head[16:]), Map: [8]byte(head[24:]),
		MapSum: binary.LittleEndian.Uint64(head[32:]), Ticks: binary.LittleEndian.Uint64(head[40:])}
	switch {
	case h.Players < 1:
		return nil, bad(12, "it has no players")
	case !isZero(head[48:60]):
		return nil, bad(48, "unused bytes are not zero")
	}
	if err := check(&h); err != nil {
		return nil, err
	}
	size := uint64(h.Players) * inputSize // of a tick
	inputs = inputs[:min(h.Ticks, uint64(len(inputs))/size)*size]
	if n, err := io.ReadFull(rd, inputs); err != nil {
		return nil, bad(demoHeader+n, "the file ends within a tick, %d of %d: %v", uint64(n)/size, h.Ticks, err)
	}
	return inputs, nil
}

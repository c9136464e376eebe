package wire

import "encoding/binary"

// InputsPacket is an Inputs: the newest State received, and the inputs of the newest ticks. Several
// packets repeat an input, because packets get lost.
type InputsPacket struct {
	Ack, Tick    uint32 // the newest decoded State; the tick of the newest input
	Epoch, Count uint8
	_            [2]byte
	Inputs       [InputsMost]Input // newest first, a tick apart
}

// Input is a player's input for a tick.
type Input struct {
	X, Y           int16 // the place for a new frog, in units
	Heading, Flags uint8
}

const (
	inputsHead = 12 // bytes of a payload before the inputs
	inputSize  = 6
)

// AppendInputs appends, after the header:
//
//	ack u32, epoch u8, count u8, zeros 2, tick u32,
//	then count × (heading u8, flags u8, x i16, y i16)
//
// It leaves out inputs of ticks before 0.
func AppendInputs(dst []byte, in *InputsPacket) []byte {
	count := int(min(uint32(in.Count), InputsMost))
	if in.Tick < uint32(count) {
		count = min(count, int(in.Tick)+1)
	}
	dst = binary.LittleEndian.AppendUint32(dst, in.Ack)
	dst = append(dst, in.Epoch, byte(count), 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, in.Tick)
	for i := range count {
		x := &in.Inputs[i]
		dst = append(dst, x.Heading, x.Flags)
		dst = binary.LittleEndian.AppendUint16(dst, uint16(x.X))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(x.Y))
	}
	return dst
}

// ParseInputs parses a whole packet of a session. A count of 0 is only an ack, as watchers send.
func ParseInputs(p []byte) (in InputsPacket, r Reason) {
	rest, r := payload(p, Inputs)
	if r != 0 {
		return in, r
	}
	if len(rest) < inputsHead {
		return in, Short
	}
	in.Ack = binary.LittleEndian.Uint32(rest)
	in.Epoch, in.Count = rest[4], rest[5]
	in.Tick = binary.LittleEndian.Uint32(rest[8:])
	list := rest[inputsHead:]
	if in.Count > InputsMost || len(list) != inputSize*int(in.Count) || !zeros(rest[6:8]) ||
		uint64(in.Tick)+1 < uint64(in.Count) {
		return InputsPacket{}, Short
	}
	for i := range int(in.Count) {
		b := list[inputSize*i:]
		in.Inputs[i] = Input{
			X: int16(binary.LittleEndian.Uint16(b[2:])), Y: int16(binary.LittleEndian.Uint16(b[4:])),
			Heading: b[0], Flags: b[1],
		}
	}
	return in, 0
}

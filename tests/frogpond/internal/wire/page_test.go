package wire

import (
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pageExamples returns the packets in PROTOCOL.md, by their names there.
func pageExamples() map[string][]byte {
	m, key := new(Mac), new(Key)
	for i := range key {
		key[i] = byte(i)
	}
	seal := func(p []byte) []byte { m.Seal(key, p); return p }
	begin := func(k Kind, sequence uint32) []byte {
		return AppendHeader(make([]byte, 0, PacketMost), k, 9, sequence)
	}
	first := View{Sequence: 2, Tick: 70, Epoch: 1, Count: 2, Self: exampleSelf()}
	first.Things[0] = Thing{Kind: 1, Number: 2, X: -64, Y: 300, Heading: 4}
	first.Things[1] = Thing{Kind: 2, Number: 500, X: 1000, Y: -1000, Heading: 15}
	second := View{Sequence: 3, Tick: 71, Epoch: 1, Count: 2, Self: exampleSelf()}
	second.Things[0] = Thing{Kind: 1, Number: 2, X: -56, Y: 300, Heading: 0}
	second.Things[1] = Thing{Kind: 2, Number: 501, X: 600, Y: 8, Heading: 3}
	whole, _ := AppendState(begin(State, 2), PacketMost, &first, nil, NoInput, 0)
	delta, _ := AppendState(begin(State, 3), PacketMost, &second, &first, 2, 0)
	inputs := AppendInputs(begin(Inputs, 5), &InputsPacket{Ack: 3, Tick: 76, Epoch: 1, Count: 2,
		Inputs: [InputsMost]Input{{Heading: 4, Flags: 1}, {X: -64, Y: 400, Heading: 4, Flags: 4}}})
	join := AppendJoin(nil, &JoinPacket{Nonce: 0x1122334455667788, Room: AnyRoom,
		Cookie: Cookie{0: 1, 15: 2}, Name: MakeName("Ada"), Old: 9})
	proof := m.Proof(key, join)
	copy(join[ProofAt:], proof[:])
	return map[string][]byte{"Join": join, "Inputs": seal(inputs), "State 2": seal(whole),
		"State 3": seal(delta)}
}

// TestPageExamples: the packets in PROTOCOL.md are the encoder's.
func TestPageExamples(t *testing.T) {
	page, err := os.ReadFile("../../PROTOCOL.md")
	require.NoError(t, err)
	for name, p := range pageExamples() {
		shown := regexp.MustCompile("(?s)\n`" + name + "`[^`]*```\n(.*?)```").FindSubmatch(page)
		if !assert.NotNil(t, shown, "%s is not on the page", name) {
			continue
		}
		assert.Equal(t, hex.EncodeToString(p), strings.Join(strings.Fields(string(shown[1])), ""), name)
	}
}

package doom

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestEffectsOnce checks that each type is in the tables at most once.
func TestEffectsOnce(t *testing.T) {
	seen := map[uint16]bool{}
	for _, e := range effects {
		for _, kind := range []uint16{e.w1, e.wr, e.s1, e.sr, e.g1, e.gr} {
			assert.False(t, kind != 0 && seen[kind], "type %d", kind)
			seen[kind] = true
		}
	}
	for kind := range others {
		assert.False(t, seen[kind], "type %d", kind)
	}
	// Doom's types without an effect here: 30 and 96 rise by the height of a texture, and textures
	// aren't read.
	for kind := uint16(1); kind <= 141; kind++ {
		unused := kind == 78 || kind == 85 || kind == 30 || kind == 96
		assert.Equal(t, kind != 85 && unused, SpecialOf(kind).Action == NoAction, "type %d", kind)
	}
}

func TestSpecialOf(t *testing.T) {
	door := Effect{Action: RaiseDoor, Target: LowestCeiling, Amount: -4, Speed: 2 << 16, Wait: 150}
	for kind, want := range map[uint16]Special{
		0:     {},
		30:    {},
		340:   {},
		65535: {},
		1:     {Effect: door, Trigger: Pushed, Again: true, Who: Players | Monsters},
		4:     {Effect: door, Trigger: Walked, Who: Players | Monsters},
		28:    {Effect: door, Trigger: Pushed, Again: true, Key: Red, Who: Players},
		46: {Effect: Effect{Action: OpenDoor, Target: LowestCeiling, Amount: -4, Speed: 2 << 16},
			Trigger: Shot, Again: true, Who: Players | Monsters},
		126: {Effect: Effect{Action: Teleport}, Trigger: Walked, Again: true, Who: Monsters},
		133: {Effect: Effect{Action: OpenDoor, Target: LowestCeiling, Amount: -4, Speed: 8 << 16},
			Trigger: Used, Key: Blue, Who: Players},
		13331: {Effect: Effect{Action: Lift, Target: LowestFloor, Speed: 8 << 16, Wait: 35},
			Trigger: Used, Again: true, Who: Players},
		15889: {
			Effect:  Effect{Action: RaiseDoor, Target: LowestCeiling, Amount: -4, Speed: 8 << 16, Wait: 300},
			Trigger: Walked, Again: true, Who: Players},
	} {
		assert.Equal(t, want, SpecialOf(kind), "type %d", kind)
	}
}

func TestFamily(t *testing.T) {
	for kind, want := range map[uint16]string{1: "door", 26: "door", 133: "locked switch",
		46:  "shot trigger",
		126: "teleport", 8: "stairs", 9: "floor", 40: "ceiling", 252: "scroller", 340: "unsupported"} {
		assert.Equal(t, want, SpecialOf(kind).Family(), "type %d", kind)
	}
}

func TestSectorSpecialOf(t *testing.T) {
	for kind, want := range map[uint16]SectorSpecial{
		0:     {},
		4:     {Light: Strobe, Dark: 15, Harm: 20},
		11:    {Harm: 20, Exit: true},
		14:    {RaiseIn: 5 * 60 * 35},
		31:    {},
		72:    {Light: Glow, Harm: 10},
		77:    {Light: StrobeInStep, Dark: 15, Harm: 10},
		128:   {Secret: true},
		65535: {Secret: true, Harm: 20},
	} {
		assert.Equal(t, want, SectorSpecialOf(kind), "type %d", kind)
	}
}

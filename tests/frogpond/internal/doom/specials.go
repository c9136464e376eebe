package doom

// The effects of lines with a special: a table for Doom's types 1 to 141 and for Boom's types in
// Freedoom's maps, and functions for Boom's generalized doors and lifts. A row of the table is an
// effect; its columns are the types with this effect, one for each way to trigger it.

// Trigger is the way to trigger a line.
type Trigger uint8

// The triggers. Pushed is like Used, but the effect is on the sector behind the line, for any tag.
const (
	Always Trigger = iota // works from the load on
	Walked
	Used
	Shot
	Pushed
)

// Action is the kind of an effect. Actions on sectors apply to all sectors with the line's tag.
type Action uint8

// The actions.
const (
	NoAction     Action = iota
	OpenDoor            // the ceiling rises
	CloseDoor           // the ceiling falls to the floor
	RaiseDoor           // opens, waits, closes
	ReopenDoor          // closes, waits, opens
	MoveFloor           // to the target
	MoveCeiling         // to the target
	Crusher             // the ceiling goes down and up for ever, and hurts
	StopCrusher         // until a restart
	Lift                // the floor falls to the target, waits, comes back
	Perpetual           // the floor goes between its lowest and highest neighbour for ever
	StopLift            // until a restart
	Stairs              // sectors with the same flat rise, each by the amount more than the last
	Donut               // a pillar falls, the ring around it rises
	Teleport            // to the tag's landing
	LineTeleport        // to the other line with this tag, turned with the lines
	Exit                // of the level
	SetLight            // to the target, or the amount without a target
	StrobeLight         // on and off
	ScrollWall          // the texture of the line's front moves by the amount in each tick
	CarryFloor          // the tag's floors carry bodies along the line
)

// Target is the height or light that an effect aims for; the effect's Amount is added.
type Target uint8

// The targets.
const (
	NoTarget       Target = iota
	OwnFloor              // of the sector itself
	LowestFloor           // of the neighbours and itself
	HighestFloor          // of the neighbours; without the amount if the floor is already there
	NextFloor             // the lowest higher floor of a neighbour
	NextLowerFloor        // the highest lower floor of a neighbour
	LowestCeiling         // of the neighbours; a floor stops at its own ceiling
	HighestCeiling        // of the neighbours
	DarkestLight          // of the neighbours and itself
	BrightestLight        // of the neighbours
)

// Change is a further change of a sector whose floor moves.
type Change uint8

// The changes. The flat and special come from the line's front sector, or from a neighbour at the
// floor's goal.
const (
	NoChange      Change = iota
	ChangeFlat           // the front's flat
	ChangeHarm           // the front's flat, and no special: the floor stops doing harm
	ChangeFront          // the front's flat and special
	ChangeNumeric        // the neighbour's flat and special, on arrival
)

// Key is a colour of keys: a player needs the card or the skull.
type Key uint8

// The keys, as bits.
const (
	Blue Key = 1 << iota
	Yellow
	Red
)

// The kinds of bodies that may trigger a line.
type Who uint8

// The kinds, as bits.
const (
	Players Who = 1 << iota
	Monsters
)

// Effect is the effect of a line. Speeds are in 1/65536 units a tick, waits in ticks, amounts in
// units.
type Effect struct {
	Action      Action
	Target      Target
	Change      Change
	Crush       bool // bodies that don't fit are hurt, and the movement goes on
	Steady      bool // Crusher: keeps its speed even if a body is in its way
	Secret      bool // Exit: to the secret level
	Speed, Wait int32
	Amount      int32
}

// Special is the meaning of a line's type.
type Special struct {
	Effect
	Trigger Trigger
	Again   bool // the line works more than once
	Key     Key  // 0 for none
	Who     Who
}

// Speeds and waits are the game's.
const (
	slow      = 1 << 16 // floors, ceilings, plates that never rest
	doorSpeed = 2 * slow
	liftSpeed = 4 * slow
	turbo     = 4 * slow
	blazing   = 8 * slow
	doorWait  = 150
	liftWait  = 105
	halfMin   = 30 * 35
	slowDark  = 35
	DoorGap   = -4 // an open door stops this far below the lowest ceiling of its neighbours
)

// effects has a row for each effect. w1 and wr are the types of lines to walk over: once and
// repeatedly. s1 and sr are the types of switches, g1 and gr the types of walls to shoot.
var effects = []struct {
	w1, wr, s1, sr, g1, gr uint16
	Effect
}{
	{2, 86, 103, 61, 0, 46, open(doorSpeed)},
	{3, 75, 50, 42, 0, 0, Effect{Action: CloseDoor, Target: OwnFloor, Speed: doorSpeed}},
	{4, 90, 29, 63, 0, 0, raise(doorSpeed, doorWait)},
	{16, 76, 0, 0, 0, 0,
		Effect{Action: ReopenDoor, Target: OwnFloor, Speed: doorSpeed, Wait: halfMin}},
	{109, 106, 112, 115, 0, 0, open(blazing)},
	{110, 107, 113, 116, 0, 0, Effect{Action: CloseDoor, Target: OwnFloor, Speed: blazing}},
	{108, 105, 111, 114, 0, 0, raise(blazing, doorWait)},

	{5, 91, 101, 64, 24, 0, floor(LowestCeiling, 0, slow)},
	{56, 94, 55, 65, 0, 0, floor(LowestCeiling, -8, slow).crushing()},
	{19, 83, 102, 45, 0, 0, floor(HighestFloor, 0, slow)},
	{36, 98, 71, 70, 0, 0, floor(HighestFloor, 8, turbo)},
	{38, 82, 23, 60, 0, 0, floor(LowestFloor, 0, slow)},
	{37, 84, 0, 0, 0, 0, floor(LowestFloor, 0, slow).with(ChangeNumeric)},
	{119, 128, 18, 69, 0, 0, floor(NextFloor, 0, slow)},
	{130, 129, 131, 132, 0, 0, floor(NextFloor, 0, turbo)},
	{58, 92, 0, 0, 0, 0, floor(OwnFloor, 24, slow)},
	{59, 93, 160, 0, 0, 0, floor(OwnFloor, 24, slow).with(ChangeFront)},
	{0, 0, 140, 0, 0, 0, floor(OwnFloor, 512, slow)},
	{22, 95, 20, 68, 47, 0, floor(NextFloor, 0, slow/2).with(ChangeHarm)},
	{0, 0, 15, 66, 0, 0, floor(OwnFloor, 24, slow/2).with(ChangeFlat)},
	{0, 0, 14, 67, 0, 0, floor(OwnFloor, 32, slow/2).with(ChangeFlat)},

	{0, 0, 41, 43, 0, 0, ceiling(OwnFloor, 0)},
	{44, 72, 0, 0, 0, 0, ceiling(OwnFloor, 8)},
	{40, 0, 0, 0, 0, 0, ceiling(HighestCeiling, 0)}, // its floor never moved

	{25, 73, 49, 0, 0, 0, crusher(slow, false)},
	{6, 77, 0, 0, 0, 0, crusher(2*slow, true)},
	{141, 0, 0, 0, 0, 0, crusher(slow, false)}, // without its noise
	{57, 74, 0, 0, 0, 0, Effect{Action: StopCrusher}},

	{10, 88, 21, 62, 0, 0, lift(liftSpeed, liftWait)},
	{121, 120, 122, 123, 0, 0, lift(blazing, liftWait)},
	{53, 87, 0, 181, 0, 0, Effect{Action: Perpetual, Speed: slow, Wait: liftWait}},
	{54, 89, 0, 0, 0, 0, Effect{Action: StopLift}},

	{8, 0, 7, 0, 0, 0, Effect{Action: Stairs, Amount: 8, Speed: slow / 4}},
	{100, 0, 127, 0, 0, 0, Effect{Action: Stairs, Amount: 16, Speed: turbo, Crush: true}},
	{0, 0, 9, 0, 0, 0, Effect{Action: Donut, Speed: slow / 2}},

	{39, 97, 0, 0, 0, 0, Effect{Action: Teleport}},
	{125, 126, 0, 0, 0, 0, Effect{Action: Teleport}},
	{0, 244, 0, 0, 0, 0, Effect{Action: LineTeleport}},

	{12, 80, 0, 0, 0, 0, Effect{Action: SetLight, Target: BrightestLight}},
	{13, 81, 0, 138, 0, 0, Effect{Action: SetLight, Amount: 255}},
	{35, 79, 0, 139, 0, 0, Effect{Action: SetLight, Amount: 35}},
	{104, 0, 0, 0, 0, 0, Effect{Action: SetLight, Target: DarkestLight}},
	{17, 0, 0, 0, 0, 0, Effect{Action: StrobeLight, Wait: slowDark}},

	// An exit puts the player at a start and the level goes on, so each exit works repeatedly.
	{0, 52, 0, 11, 0, 0, Effect{Action: Exit}},
	{0, 124, 0, 51, 0, 0, Effect{Action: Exit, Secret: true}},
}

var families = [...]string{NoAction: "unsupported",
	OpenDoor: "door", CloseDoor: "door", RaiseDoor: "door", ReopenDoor: "door",
	MoveFloor: "floor", Donut: "floor", Stairs: "stairs",
	MoveCeiling: "ceiling", Crusher: "crusher", StopCrusher: "crusher",
	Lift: "lift", Perpetual: "lift", StopLift: "lift",
	Teleport: "teleport", LineTeleport: "teleport", Exit: "exit",
	SetLight: "light", StrobeLight: "light", ScrollWall: "scroller", CarryFloor: "scroller"}

// others has the types that don't fit in a column: pushed doors, locked doors, and effects without
// a trigger.
var others = map[uint16]Special{
	1:   {Effect: raise(doorSpeed, doorWait), Trigger: Pushed, Again: true, Who: Players | Monsters},
	26:  {Effect: raise(doorSpeed, doorWait), Trigger: Pushed, Again: true, Key: Blue},
	27:  {Effect: raise(doorSpeed, doorWait), Trigger: Pushed, Again: true, Key: Yellow},
	28:  {Effect: raise(doorSpeed, doorWait), Trigger: Pushed, Again: true, Key: Red},
	31:  {Effect: open(doorSpeed), Trigger: Pushed},
	32:  {Effect: open(doorSpeed), Trigger: Pushed, Key: Blue},
	33:  {Effect: open(doorSpeed), Trigger: Pushed, Key: Red},
	34:  {Effect: open(doorSpeed), Trigger: Pushed, Key: Yellow},
	117: {Effect: raise(blazing, doorWait), Trigger: Pushed, Again: true},
	118: {Effect: open(blazing), Trigger: Pushed},
	133: {Effect: open(blazing), Trigger: Used, Key: Blue},
	135: {Effect: open(blazing), Trigger: Used, Key: Red},
	137: {Effect: open(blazing), Trigger: Used, Key: Yellow},
	99:  {Effect: open(blazing), Trigger: Used, Again: true, Key: Blue},
	134: {Effect: open(blazing), Trigger: Used, Again: true, Key: Red},
	136: {Effect: open(blazing), Trigger: Used, Again: true, Key: Yellow},
	48:  {Effect: Effect{Action: ScrollWall, Amount: 1}, Trigger: Always},
	85:  {Effect: Effect{Action: ScrollWall, Amount: -1}, Trigger: Always},
	252: {Effect: Effect{Action: CarryFloor}, Trigger: Always},
}

// monstersToo are the types for players and monsters, monstersOnly those for monsters only.
var (
	monstersToo  = []uint16{4, 10, 39, 46, 88, 97, 244}
	monstersOnly = []uint16{125, 126}
)

func raise(speed, wait int32) Effect {
	return Effect{Action: RaiseDoor, Target: LowestCeiling, Amount: DoorGap, Speed: speed, Wait: wait}
}

func open(speed int32) Effect {
	return Effect{Action: OpenDoor, Target: LowestCeiling, Amount: DoorGap, Speed: speed}
}

func floor(to Target, amount, speed int32) Effect {
	return Effect{Action: MoveFloor, Target: to, Amount: amount, Speed: speed}
}

func (e Effect) crushing() Effect {
	e.Crush = true
	return e
}

func (e Effect) with(c Change) Effect {
	e.Change = c
	return e
}

func ceiling(to Target, amount int32) Effect {
	return Effect{Action: MoveCeiling, Target: to, Amount: amount, Speed: slow}
}

func lift(speed, wait int32) Effect {
	return Effect{Action: Lift, Target: LowestFloor, Speed: speed, Wait: wait}
}

func crusher(speed int32, steady bool) Effect {
	return Effect{Action: Crusher, Target: OwnFloor, Amount: 8, Speed: speed, Crush: true,
		Steady: steady}
}

// specials is the table by type, made from the rows above at the start of the program.
var specials = func() (table [256]Special) {
	for _, e := range effects {
		for i, kind := range [...]uint16{e.w1, e.wr, e.s1, e.sr, e.g1, e.gr} {
			if kind != 0 {
				table[kind] = Special{e.Effect, [...]Trigger{Walked, Used, Shot}[i/2], i%2 == 1, 0, Players}
			}
		}
	}
	for kind, special := range others {
		special.Who |= Players
		table[kind] = special
	}
	for _, kind := range monstersToo {
		table[kind].Who |= Monsters
	}
	for _, kind := range monstersOnly {
		table[kind].Who = Monsters
	}
	return table
}()

// Family returns the name under which a type is counted: its action's family, or a family of its
// own for locked switches and walls that are shot.
func (s Special) Family() string {
	switch {
	case s.Trigger == Shot:
		return "shot trigger"
	case s.Trigger == Used && s.Key != 0:
		return "locked switch"
	}
	return families[s.Action]
}

// SpecialOf returns the meaning of a line's type. For an unsupported type it returns the zero
// Special with NoAction, so the line does nothing.
func SpecialOf(kind uint16) Special {
	switch {
	case int(kind) < len(specials):
		return specials[kind]
	case 0x3400 <= kind && kind < 0x3800:
		return generalLift(kind - 0x3400)
	case 0x3c00 <= kind && kind < 0x4000:
		return generalDoor(kind - 0x3c00)
	}
	return Special{}
}

// general returns the special of one of Boom's generalized types. Its lowest three bits are the
// trigger, and whether the line works again.
func general(bits uint16, effect Effect, monsters bool) Special {
	s := Special{effect, [...]Trigger{Walked, Used, Shot, Pushed}[bits>>1&3], bits&1 != 0, 0, Players}
	if monsters {
		s.Who |= Monsters
	}
	return s
}

// generalLift decodes 2 bits of speed, 1 for monsters, 2 of wait and 2 of target.
func generalLift(bits uint16) Special {
	speed := int32(2*slow) << (bits >> 3 & 3)
	wait := [...]int32{35, 105, 175, 350}[bits>>6&3]
	e := lift(speed, wait)
	switch bits >> 8 & 3 {
	case 1:
		e.Target = NextLowerFloor
	case 2:
		e.Target = LowestCeiling
	case 3:
		e = Effect{Action: Perpetual, Speed: speed, Wait: wait}
	}
	return general(bits, e, bits>>5&1 != 0)
}

// generalDoor decodes 2 bits of speed, 2 of action, 1 for monsters and 2 of wait.
func generalDoor(bits uint16) Special {
	speed := int32(doorSpeed) << (bits >> 3 & 3)
	wait := [...]int32{35, doorWait, 2 * doorWait, 7 * doorWait}[bits>>8&3]
	e := raise(speed, wait)
	switch bits >> 5 & 3 {
	case 1:
		e = open(speed)
	case 2:
		e = Effect{Action: ReopenDoor, Target: OwnFloor, Speed: speed, Wait: wait}
	case 3:
		e = Effect{Action: CloseDoor, Target: OwnFloor, Speed: speed}
	}
	return general(bits, e, bits>>7&1 != 0)
}

package doom

import (
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/scope/flow"
)

// The events of a level's graph. The key of a line's event is the line's number, and its outputs
// are a Touch. Players and monsters have events of their own. Begin has no key and no outputs.
const (
	BeginEvent  = "level.begin"
	WalkedEvent = "line.walked"
	UsedEvent   = "line.used"
	ShotEvent   = "line.shot"
	MonsterPart = ".monster" // suffix of a line's event for monsters
)

// Touch is the outputs of a line's event: whether the body came from the front, and its keys.
type Touch struct{ Front, Blue, Yellow, Red bool }

// verbs are the host's actions with their inputs. The forms for pushed doors and lifts take a
// sector instead of a tag.
var verbs = [...]struct{ name, inputs string }{
	OpenDoor:     {"door.open", "tag speed"},
	CloseDoor:    {"door.close", "tag speed"},
	RaiseDoor:    {"door.raise", "tag speed wait"},
	ReopenDoor:   {"door.reopen", "tag speed wait"},
	MoveFloor:    {"floor.move", "tag target amount speed change crush line"},
	MoveCeiling:  {"ceiling.move", "tag target amount speed"},
	Crusher:      {"crusher.start", "tag speed steady"},
	StopCrusher:  {"crusher.stop", "tag"},
	Lift:         {"lift.call", "tag target speed wait"},
	Perpetual:    {"lift.start", "tag speed wait"},
	StopLift:     {"lift.stop", "tag"},
	Stairs:       {"stairs.build", "tag amount speed crush"},
	Donut:        {"donut.sink", "tag speed"},
	Teleport:     {"body.teleport", "tag"},
	LineTeleport: {"body.teleport_line", "line"},
	Exit:         {"level.exit", "secret"},
	SetLight:     {"light.set", "tag target amount"},
	StrobeLight:  {"light.strobe", "tag wait"},
	ScrollWall:   {"wall.scroll", "line amount"},
	CarryFloor:   {"floor.carry", "tag line"},
}

// Graph returns the effects of the level's specials, as the source of a graph. Each line has a
// chain of nodes. It begins with events for players, monsters or both, each with a branch on the
// front or a key, if needed. Then come a branch that stops a second use, unless the line may
// repeat, and the action. One begin event starts the specials that work from the start on.
func (l *Level) Graph() flow.Source {
	t := translator{level: l}
	t.Name = l.Name
	begin := flow.Node{Name: "begin", Type: "event", Of: BeginEvent}
	var first []flow.Link
	for i := range l.Lines {
		n := &l.Lines[i]
		switch s := SpecialOf(n.Special); {
		case s.Action == NoAction || s.Trigger == Pushed && n.Back.IsNil():
		case s.Trigger == Always:
			first = append(first, flow.Link{Node: t.action(i, n, &s)})
		default:
			t.line(i, n, &s)
		}
	}
	for i := range l.Sectors {
		if s := SectorSpecialOf(l.Sectors[i].Special); s.Light != SteadyLight {
			name := "sector " + strconv.Itoa(i)
			t.Nodes = append(t.Nodes, flow.Node{Name: name, Type: "action", Of: "light.begin",
				In: []flow.Input{{Name: "sector", Constant: i}, {Name: "kind", Constant: int(s.Light)},
					{Name: "dark", Constant: s.Dark}}})
			first = append(first, flow.Link{Node: name})
		}
	}
	begin.List = then(first...)
	t.Nodes = append(t.Nodes, begin)
	return t.Source
}

// secret is the flag of a line that looks like a wall on the player's map. Monsters don't use such
// a line.
const secret = 32

type translator struct {
	flow.Source
	level *Level
}

func then(links ...flow.Link) []flow.List { return []flow.List{{Name: "then", Links: links}} }

func (t *translator) line(i int, n *Line, s *Special) {
	name := "line " + strconv.Itoa(i)
	action := t.action(i, n, s)
	goal := flow.Link{Node: action}
	if !s.Again {
		done := t.variable(name + " done")
		t.last().Out = []flow.Output{{Name: "acted", Variable: done}}
		t.Nodes = append(t.Nodes, flow.Node{Name: name + " once", Type: "branch",
			In:   []flow.Input{{Name: "if", Variable: done}},
			List: []flow.List{{Name: "else", Links: []flow.Link{goal}}}})
		goal.Node = name + " once"
	}
	needs := ""
	switch {
	case s.Key != 0:
		needs = map[Key]string{Blue: "blue", Yellow: "yellow", Red: "red"}[s.Key]
	case s.Action == Teleport || s.Action == LineTeleport:
		needs = "front"
	}
	event := map[Trigger]string{Walked: WalkedEvent, Used: UsedEvent, Pushed: UsedEvent,
		Shot: ShotEvent}[s.Trigger]
	if s.Who&Players != 0 {
		t.event(name+" by a player", event, i, needs, goal)
	}
	if s.Who&Monsters != 0 && !(event == UsedEvent && n.Flags&secret != 0) {
		t.event(name+" by a monster", event+MonsterPart, i, needs, goal)
	}
}

// event adds the node of an event and, if needs isn't "", a branch on that output.
func (t *translator) event(name, of string, line int, needs string, goal flow.Link) {
	node := flow.Node{Name: name, Type: "event", Of: of, Key: int32(line), List: then(goal)}
	if needs != "" {
		value := t.variable(name + " " + needs)
		node.Out = []flow.Output{{Name: needs, Variable: value}}
		node.List = then(flow.Link{Node: name + " may"})
		t.Nodes = append(t.Nodes, flow.Node{Name: name + " may", Type: "branch",
			In: []flow.Input{{Name: "if", Variable: value}}, List: then(goal)})
	}
	t.Nodes = append(t.Nodes, node)
}

func (t *translator) action(i int, n *Line, s *Special) string {
	verb := verbs[s.Action]
	if s.Trigger == Pushed {
		verb.name = strings.Replace(verb.name, ".", ".push_", 1)
		verb.inputs = strings.Replace(verb.inputs, "tag", "sector", 1)
	}
	node := flow.Node{Name: "line " + strconv.Itoa(i), Type: "action", Of: verb.name}
	for input := range strings.FieldsSeq(verb.inputs) {
		if value := t.input(input, i, n, s); value != 0 && value != false {
			node.In = append(node.In, flow.Input{Name: input, Constant: value})
		}
	}
	t.Nodes = append(t.Nodes, node)
	return node.Name
}

func (t *translator) input(name string, line int, n *Line, s *Special) any {
	switch name {
	case "tag":
		return int(n.Tag)
	case "sector":
		return int(n.Back.Get(t.level.Base).Number)
	case "line":
		return line
	case "target":
		return int(s.Target)
	case "amount":
		return int(s.Amount)
	case "speed":
		return int(s.Speed)
	case "wait":
		return int(s.Wait)
	case "change":
		return int(s.Change)
	case "crush":
		return s.Crush
	case "steady":
		return s.Steady
	}
	return s.Secret
}

func (t *translator) variable(name string) string {
	t.Variables = append(t.Variables, flow.Variable{Name: name, Type: flow.Bool})
	return name
}

func (t *translator) last() *flow.Node { return &t.Nodes[len(t.Nodes)-1] }

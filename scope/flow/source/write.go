package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/scope/flow"
)

// Write returns a graph as JSON, with a line for each variable and node. The bytes are the same on
// every target. Write doesn't check the graph. If flow.Compile makes a blob of the graph, Compile
// of the result makes the same blob.
func Write(graph flow.Source) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n  \"version\": 1,\n  \"name\": %s", quote(graph.Name))
	if graph.Seed != 0 {
		fmt.Fprintf(&b, ",\n  \"seed\": %d", graph.Seed)
	}
	var lines []string
	for _, v := range graph.Variables {
		members := []string{`"type": ` + quote(v.Type.String())}
		if text := constantText(v.Value); v.Value != nil && !isZero(text, v.Type) {
			members = append(members, `"value": `+text)
		}
		lines = append(lines, quote(v.Name)+": "+object(members))
	}
	if lines != nil {
		fmt.Fprintf(&b, ",\n  \"variables\": {\n    %s\n  }", strings.Join(lines, ",\n    "))
	}
	lines = nil
	for _, n := range graph.Nodes {
		lines = append(lines, quote(n.Name)+": "+object(nodeText(n)))
	}
	b.WriteString(",\n  \"nodes\": {")
	if lines != nil {
		fmt.Fprintf(&b, "\n    %s\n  ", strings.Join(lines, ",\n    "))
	}
	b.WriteString("}\n}\n")
	return b.Bytes()
}

func isZero(text string, t flow.Type) bool {
	if t == flow.Bool {
		return text == "false"
	}
	return text == "0" || text == "0.0"
}

func nodeText(n flow.Node) (members []string) {
	switch n.Type {
	case "event", "action", "send":
		members = append(members, quote(n.Type)+": "+quote(n.Of))
	default:
		members = append(members, `"type": `+quote(n.Type))
	}
	if n.Key != 0 {
		members = append(members, `"key": `+strconv.Itoa(int(n.Key)))
	}
	var in, out []string
	for _, i := range n.In {
		switch {
		case i.Variable != "":
			in = append(in, quote(i.Name)+": "+quote(i.Variable))
		case i.Constant != nil:
			in = append(in, quote(i.Name)+": "+constantText(i.Constant))
		}
	}
	for _, o := range n.Out {
		out = append(out, quote(o.Name)+": "+quote(o.Variable))
	}
	if in != nil {
		members = append(members, `"in": `+object(in))
	}
	if out != nil {
		members = append(members, `"out": `+object(out))
	}
	for _, l := range n.List {
		members = append(members, quote(l.Name)+": "+linksText(l.Links))
	}
	return members
}

func linksText(links []flow.Link) string {
	var list []string
	for _, l := range links {
		if l.Port == "" {
			list = append(list, quote(l.Node))
		} else {
			list = append(list, "{"+quote(l.Node)+": "+quote(l.Port)+"}")
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func object(members []string) string { return "{" + strings.Join(members, ", ") + "}" }

// constantText writes a float with a point or an exponent, and with enough digits to read it back
// exactly.
func constantText(value any) string {
	number, isFloat := value.(float64)
	if short, is32 := value.(float32); is32 {
		number, isFloat = float64(short), true
		text := strconv.FormatFloat(number, 'g', -1, 32)
		if again, _ := strconv.ParseFloat(text, 64); float32(again) == short {
			return pointed(text)
		}
	}
	if isFloat {
		return pointed(strconv.FormatFloat(number, 'g', -1, 64))
	}
	return fmt.Sprint(value)
}

func pointed(text string) string {
	if strings.ContainsAny(text, ".e") {
		return text
	}
	return text + ".0"
}

func quote(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string never fails
	return strings.TrimSuffix(b.String(), "\n")
}

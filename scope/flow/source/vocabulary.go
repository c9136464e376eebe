package source

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/platform/jsonfile"
	"github.com/upfront-mem/upfront/scope/flow"
)

// WriteVocabulary returns a host's vocabulary as JSON, for tools without the host:
//
//	{
//	  "events": {
//	    "line.used": {"keys": "int"}
//	  },
//	  "actions": {
//	    "door.open": {"tag": "int", "speed": "int", "moved": "out bool"}
//	  }
//	}
func WriteVocabulary(v flow.Vocabulary) []byte {
	var b bytes.Buffer
	b.WriteString("{")
	for i, part := range []struct {
		key  string
		list []flow.Signature
	}{{"events", v.Events}, {"actions", v.Actions}} {
		var lines []string
		for _, s := range part.list {
			var members []string
			for _, p := range s.Parameters {
				members = append(members,
					quote(p.Name)+": "+quote(map[bool]string{true: "out "}[p.Out]+p.Type.String()))
			}
			lines = append(lines, "\n    "+quote(s.Name)+": "+object(members))
		}
		end := "\n  "
		if lines == nil {
			end = ""
		}
		fmt.Fprintf(&b, "%s\n  %q: {%s%s}", []string{"", ","}[i], part.key, strings.Join(lines, ","), end)
	}
	b.WriteString("\n}\n")
	return b.Bytes()
}

// ReadVocabulary reads the JSON of WriteVocabulary, as strictly as a graph. Errors begin with name
// and line.
func ReadVocabulary(name string, data []byte) (v flow.Vocabulary, err error) {
	file, root := jsonfile.Parse(name+":", data)
	if root != nil {
		for m := range file.Members(root, []string{"events", "actions"}) {
			if m.Name == "events" {
				v.Events = signatures(file, m, false)
			} else {
				v.Actions = signatures(file, m, true)
			}
		}
	}
	if err := file.Err(); err != nil {
		return flow.Vocabulary{}, err
	}
	return v, nil
}

// Guess returns a vocabulary with all actions and events of a graph, for a tool that draws or
// checks the graph without its host. Parameters that the graph doesn't use are missing. If the
// graph sets a parameter only to constants, the parameter's type may be int where the host's is
// number or handle.
func Guess(graph flow.Source) (v flow.Vocabulary) {
	types := map[string]flow.Type{}
	for _, variable := range graph.Variables {
		types[variable.Name] = variable.Type
	}
	met := map[[2]string]int{} // indices in the list of actions or events
	// by action or event, and parameter: a variable has shown the type
	sure := map[[3]string]bool{}
	for _, n := range graph.Nodes {
		list := &v.Events
		switch n.Type {
		case "action":
			list = &v.Actions
		case "event", "send":
		default:
			continue
		}
		name := [2]string{strconv.FormatBool(list == &v.Actions), n.Of}
		i, known := met[name]
		if !known {
			i = len(*list)
			met[name] = i
			*list = append(*list, flow.Signature{Name: n.Of})
		}
		parameters := &(*list)[i].Parameters
		add := func(p flow.Parameter, isSure bool) {
			of := [3]string{n.Of, strconv.FormatBool(list == &v.Actions), p.Name}
			k := slices.IndexFunc(*parameters, func(other flow.Parameter) bool { return other.Name == p.Name })
			switch {
			case k < 0:
				*parameters = append(*parameters, p)
			case isSure && !sure[of], !sure[of] && p.Type == flow.Number:
				(*parameters)[k].Type = p.Type
			}
			sure[of] = sure[of] || isSure
		}
		for _, in := range n.In {
			if n.Type == "send" && in.Name == "key" {
				continue
			}
			if t, known := types[in.Variable]; known {
				add(flow.Parameter{Name: in.Name, Type: t}, true)
			} else {
				add(flow.Parameter{Name: in.Name, Type: constantType(in.Constant)}, false)
			}
		}
		for _, out := range n.Out {
			t, known := types[out.Variable]
			if !known {
				t = flow.Int // Compile reports the missing variable
			}
			add(flow.Parameter{Name: out.Name, Type: t, Out: n.Type == "action"}, known)
		}
	}
	return v
}

func constantType(value any) flow.Type {
	switch value.(type) {
	case bool:
		return flow.Bool
	case float32, float64:
		return flow.Number
	}
	return flow.Int
}

func signatures(file *jsonfile.File, all *jsonfile.Value, actions bool) (list []flow.Signature) {
	for m := range file.Members(all, nil) {
		s := flow.Signature{Name: m.Name}
		for p := range file.Members(m, nil) {
			text, _ := p.Str()
			name, out := strings.CutPrefix(text, "out ")
			if t := typeNamed(name); t == 0 || out && !actions {
				file.Refuse(p, errors.New(
					`is not a parameter ("bool", "int", "number" or "handle"; an action may have "out int")`))
			} else {
				s.Parameters = append(s.Parameters, flow.Parameter{Name: p.Name, Type: t, Out: out})
			}
		}
		list = append(list, s)
	}
	return list
}

package source

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/platform/jsonfile"
	"github.com/upfront-mem/upfront/scope/flow"
)

// WriteVocabulary is what a host offers, as JSON for the tools, which have no host:
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
				members = append(members, quote(p.Name)+": "+quote(map[bool]string{true: "out "}[p.Out]+p.Type.String()))
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

// ReadVocabulary reads what WriteVocabulary writes, as strictly as a graph. Errors begin with name
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

func signatures(file *jsonfile.File, all *jsonfile.Value, actions bool) (list []flow.Signature) {
	for m := range file.Members(all, nil) {
		s := flow.Signature{Name: m.Name}
		for p := range file.Members(m, nil) {
			text, _ := p.Str()
			name, out := strings.CutPrefix(text, "out ")
			if t := typeNamed(name); t == 0 || out && !actions {
				file.Refuse(p, errNotParameter)
			} else {
				s.Parameters = append(s.Parameters, flow.Parameter{Name: p.Name, Type: t, Out: out})
			}
		}
		list = append(list, s)
	}
	return list
}

var errNotParameter = errors.New(`is not a parameter ("bool", "int", "number" or "handle"; an action may have "out int")`)

// Package source reads and writes the JSON of graphs, which an editor saves or people write by
// hand.
//
//	data, report, err := source.Compile("door.json", text, host.Vocabulary())
//
// [Compile] makes a blob of such a file, and [Write] makes a file of a graph, such as the result of
// [flow.Graph.Source]. This is door.json:
//
//	{
//	  "version": 1,
//	  "name": "door",
//	  "note": "Opens with the blue key, and closes by itself.",
//	  "variables": {
//	    "held":  {"type": "int", "note": "1 if the user has the blue key"},
//	    "moved": {"type": "bool", "value": false}
//	  },
//	  "nodes": {
//	    "used":   {"event": "line.used", "key": 12, "out": {"keys": "held"}, "then": "locked"},
//	    "locked": {"type": "equal", "in": {"a": "held", "b": 1},
//	               "then": "open", "else": "refuse"},
//	    "open":   {"action": "door.open", "in": {"tag": 7, "speed": 2},
//	               "out": {"moved": "moved"}, "then": "wait"},
//	    "wait":   {"type": "delay", "in": {"ticks": 150}, "then": "close"},
//	    "close":  {"action": "door.close", "in": {"tag": 7}},
//	    "refuse": {"action": "sound.play", "in": {"id": 34}, "then": [{"wait": "cancel"}]}
//	  }
//	}
//
// A node is an event, an action or a send, with its name in the host's vocabulary, or has a "type".
// Package flow lists the types with their inputs, lists of links and ports. "in" contains
// constants, or names of variables as strings. "out" names the variables that the node writes. Any
// other key is a list of links: to a node, to several nodes in order, or to a port of a node, as
// {"wait": "cancel"}. The order of the nodes is kept in the blob; the order of a node's keys has no
// meaning. A graph, a variable and a node may have a "note", which isn't in the blob.
//
// Reading is strict, and reports all errors at once:
//
//	door.json:12: nodes.open.in.tag: tag: no variable "seven"
//	door.json:14: nodes.close.then: then leads to "shut", and there is no such node
//
// The tool upfront also compiles files. It needs the vocabulary, which the program prints once:
//
//	_, err := os.Stdout.Write(source.WriteVocabulary(host.Vocabulary()))
//
// With this output in host.json,
//
//	upfront flow compile --host host.json door.json
//
// writes door.blob for [flow.Host.Load]. The tool's other commands for graphs are check, strip,
// draw, diff, merge, trace and export. A game that ships blobs doesn't import this package.
package source

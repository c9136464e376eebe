// Package source reads and writes graphs as JSON. An editor saves this JSON, or people write it by
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
// A node has one of the keys "event", "action" and "send", with a name of the host's vocabulary, or
// the key "type". Package flow lists the types, and the inputs, lists and ports of each type. The
// "key" of an event is the number of an object in the level. "in" contains constants, or names of
// variables as strings. "out" names the variables that the node writes. A graph, a variable and a
// node may have a "note", which isn't in the blob. Any other key of a node is a list of links. The
// list leads to a node, to several nodes in order, or to a port of a node, as {"wait": "cancel"}.
// The blob keeps the order of the nodes. The order of a node's keys has no meaning.
//
// Reading is strict, and reports several errors at once:
//
//	door.json:13: nodes.open.in.tag: tag: no variable "seven"
//	door.json:16: nodes.close.then: then leads to "shut", and there is no such node
//
// The tool upfront also compiles files. The tool needs the vocabulary, so the program prints the
// vocabulary once:
//
//	_, err := os.Stdout.Write(source.WriteVocabulary(host.Vocabulary()))
//
// With this output in host.json,
//
//	upfront flow compile --host host.json door.json
//
// writes door.blob for [flow.Host.Load]. The tool's other commands for graphs are check, strip,
// draw, diff, merge, trace and export. A game that ships blobs needn't import this package.
package source

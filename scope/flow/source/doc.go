// Package source reads and writes the JSON of a graph: what an editor saves, and what people may
// write by hand.
//
//	{
//	  "version": 1,
//	  "name": "door",
//	  "note": "Opens for who has the blue key, and closes by itself.",
//	  "variables": {
//	    "held":  {"type": "int", "note": "the keys of who used it, a bit for each"},
//	    "moved": {"type": "bool", "value": false}
//	  },
//	  "nodes": {
//	    "used":   {"event": "line.used", "key": 12, "out": {"keys": "held"}, "then": "locked"},
//	    "locked": {"type": "equal", "in": {"a": "held", "b": 1}, "then": "open", "else": "refuse"},
//	    "open":   {"action": "door.open", "in": {"tag": 7, "speed": 2}, "out": {"moved": "moved"}, "then": "wait"},
//	    "wait":   {"type": "delay", "in": {"ticks": 150}, "then": "close"},
//	    "close":  {"action": "door.close", "in": {"tag": 7}},
//	    "refuse": {"action": "sound.play", "in": {"id": 34}, "then": [{"wait": "cancel"}]}
//	  }
//	}
//
// A node is an event, an action or a send, of a name in the host's vocabulary, or of a built-in
// type; package flow lists these, with their inputs, lists of links and ports. What is given in
// "in" is a constant, or a variable where it is a string. What "out" names is a variable that is
// written. Any other key is a list of links: to a node, to several in their order, or to a port of
// a node, as in {"wait": "cancel"}. The order of the nodes is that of the blob; that of the keys of
// a node means nothing. A "note" may stand in a graph, a variable and a node; no blob has it.
//
// Reading is strict, and names all faults at once:
//
//	door.json:12: nodes.open.in.tag: "seven" is no variable
//	door.json:14: nodes.close.then: no node is called "shut"
//
// The project's tool, budget/cmd/upfront, makes a blob of it. A program prints its vocabulary once:
//
//	_, err := os.Stdout.Write(source.WriteVocabulary(host.Vocabulary()))
//
// With that as host.json,
//
//	upfront flow compile --host host.json door.json
//
// writes door.blob, which flow.Host.Load takes; check, draw, trace and export are its other verbs.
//
// [Compile] makes the blob of such a file, and [Write] the file of a graph that [flow.Graph.Source]
// gives back. The runtime has no part of this: a game that ships blobs doesn't import the package.
package source

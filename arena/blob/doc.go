// Package blob writes typed nodes to one block that can be saved with one write, loaded with one
// read, and used in place on every target. Nothing is parsed, fixed up or allocated.
//
//	type Room struct {
//		Name  blob.Str
//		Exits blob.Array[blob.Link[Room]]
//		Depth int32
//		Lit   bool
//		_     [3]byte
//	}
//
//	var rooms = blob.Of[Room]() // once; panics if a field's bytes differ between targets
//
//	w := rooms.Writer(block)    // in a tool, or as a level loads
//	cellar := blob.Put(w, Room{Name: w.Str("cellar"), Depth: 1})
//	hall := blob.Put(w, Room{Name: w.Str("hall"), Exits: blob.PutAll(w, cellar)})
//	data, err := w.Finish(hall)
//
//	root, b, err := rooms.Verify(data, scratch) // data from any source
//	for _, exit := range root.Exits.Get(b) {
//		if room := exit.Get(b); room != nil {
//			fmt.Println(room.Name.Get(b))
//		}
//	}
//
// Names to know: [Of] declares the type of a root. [Format.Writer] writes and [Format.Verify]
// reads. [Link], [Array] and [Str] name one node, several nodes, and a text. A link to a [Union]
// leads to one of several types, such as the instructions of a script.
//
// Verify accepts only bytes whose links are all safe to follow; afterwards a link costs an addition
// and a check for nil. Verify uses no Go heap, doesn't recurse along links, and its work is bounded
// by the size. A blob of other types is refused with the first field that differs, because the
// names of all fields are at its end. [Writer.Bare] omits them and keeps a fingerprint.
//
// A blob has less than 4 GiB, in little-endian order. It doesn't grow, and its nodes aren't freed.
// Don't write to a verified blob: one from outside may use the same bytes as a number and as a
// link. Don't follow a link in another blob; this isn't checked. For offsets in a region that keeps
// changing use arena.Ptr, Slice and String. One goroutine at a time writes; any number may read a
// verified blob.
//
// Source: Bitsquid, "File formats for memory" in "Visual Scripting the Data-Oriented Way".
package blob

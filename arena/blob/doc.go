// Package blob is file formats for memory: typed nodes, one after another in one block, that point
// at each other by offsets. The block is written to a file in one write, read back in one read, and
// used where it lies, on every target: nothing is parsed, fixed up or allocated.
//
//	type Room struct {
//		Name  blob.Str
//		Exits blob.Array[blob.Link[Room]]
//		Depth int32
//		Lit   bool
//		_     [3]byte
//	}
//
//	var rooms = blob.Of[Room]() // once; a field whose bytes differ between targets stops the program
//
//	w := rooms.Writer(block)                                // write: in a tool, or as a level loads
//	cellar := blob.Put(w, Room{Name: w.Str("cellar"), Depth: 1})
//	hall := blob.Put(w, Room{Name: w.Str("hall"), Exits: blob.PutAll(w, cellar)})
//	data, err := w.Finish(hall)
//
//	root, b, err := rooms.Verify(data, scratch)             // read: from anybody
//	for _, exit := range root.Exits.Get(b) {
//		if room := exit.Get(b); room != nil {
//			fmt.Println(room.Name.Get(b))
//		}
//	}
//
// Six names to know: [Of] declares the type of a root; [Format.Writer] and [Format.Verify] write
// and read; [Link], [Array] and [Str] are one node, several, and a text.
//
// Verify reads any bytes: what it lets through can be followed without another check than for nil,
// for an addition a link. It makes nothing on the Go heap, doesn't recurse along links, and its
// work is bounded by the size. A blob of other types is refused with the first field that differs:
// the names of all fields lie at its end. [Writer.Bare] leaves them out, and a fingerprint stays.
//
// A blob has less than 4 GiB, and little-endian order. It doesn't grow, and its nodes aren't freed.
// What was verified isn't written to: in a stranger's blob a number may lie where another node has
// a link. A link is good in its own blob only; nothing looks. For offsets in a region that goes on
// changing use arena.Ptr, Slice and String.
//
// A link may lead to one of several types, as an instruction does: see [Union]. One goroutine at a
// time writes; a verified blob may be read by all.
//
// Source: Bitsquid, "File formats for memory" in "Visual Scripting the Data-Oriented Way".
package blob

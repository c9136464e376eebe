// Package blob writes typed nodes to one block that can be saved with one write, loaded with one
// read, and used in place on every target. Loading parses, changes and allocates nothing.
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
// [Of] declares the type of a root, [Format.Writer] writes a blob, and [Format.Verify] reads one. A
// node refers to another node by a [Link], to adjacent nodes by an [Array], and to a text by a
// [Str]. A link to a [Union] leads to one of several types, such as the instructions of a script.
//
// Verify accepts only bytes whose links are all safe to follow. Then following a link costs only an
// addition and a check for nil. Verify doesn't recurse along links, and its work is bounded by the
// size of the blob. It allocates on the Go heap only for an error. The names of all fields are at
// the end of a blob. So if a blob has other types, the error names the first field that differs.
// [Writer.Bare] replaces the names by a fingerprint.
//
// A blob has less than 4 GiB, in little-endian order. It doesn't grow, and its nodes can't be
// freed. Don't write to a verified blob, because a blob from outside may use the same bytes as a
// number and as a link. Follow a link only in its own blob; Get doesn't check this. For links in
// memory that changes use arena.Ptr, Slice and String. One goroutine at a time may write a blob.
// Any number of goroutines may read a verified blob.
//
// Source: Bitsquid, "File formats for memory" in "Visual Scripting the Data-Oriented Way".
package blob

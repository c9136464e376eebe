package blob

// Place returns the index at which Verify first looks for a node of the second type in a table of
// 1<<turns places.
func Place(offset, turns uint32) uint32 { return entry{offset, 1, 1}.place(turns) & (1<<turns - 1) }

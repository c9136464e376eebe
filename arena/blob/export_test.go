package blob

// Place is where Verify looks first for a node of the second type in a table of 2 to the turns.
func Place(offset, turns uint32) uint32 { return entry{offset, 1, 1}.place(turns) & (1<<turns - 1) }

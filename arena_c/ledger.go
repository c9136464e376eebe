package arena_c

// SiteFigures are what was asked for at one place of the program, for one row: what is live of it, the most that was at
// once, and all. A site of Chunks asked pools for chunks; the bytes of a pool are booked where the pool was made, too.
type SiteFigures struct {
	Site              uint32 // its Text is one call; 0: it has none
	Chunks            bool
	Live, Peak, Total Amount
	Stacks            []StackFigures // that were sampled
}

// Amount is what requests got.
type Amount struct{ Bytes, Objects uint64 }

// StackFigures are the samples that were taken on one way to a site. A sample stands for as many bytes as lie between two.
type StackFigures struct {
	Calls       uint32 // its Text is the way
	Live, Total uint64
}

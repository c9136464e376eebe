package record

// Play is Replay in arenas that are empty, and again are in the end.
var Play = play

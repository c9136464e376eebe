package record

// Play is Replay in empty arenas, and leaves them empty.
var Play = play

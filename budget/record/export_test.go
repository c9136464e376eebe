package record

// Play is Replay in a budget that is open and empty.
var Play = play

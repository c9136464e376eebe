// Package fight has the state of a fighting game with rollback: two fighters of 132 numbers each
// and a match of 36, shots with handles, sparks, props, combos, buffs, trails, a queue of events,
// and the results of rounds. The other player's input arrives seven frames late, and in one frame
// of five it doesn't arrive. So in each frame the game goes back to the last frame with both
// inputs, plays seven or eight frames again, and takes a snapshot after each. These are one
// Restore, seven or eight Takes, and a hash, which a test of synchrony needs.
//
// Two programs share the rules (rules.go), and end with the same fight after 20,000 frames:
//
//	                code for snapshots  garbage a frame  median frame  resident
//	in a region     7 lines             0                4.8 µs        8.0 MB
//	cloned by hand  82 lines            25 KB            11 µs         12.7 MB
//
// In a region the seven lines are save.Begin, save.NewRing and the calls of Take, Restore and Hash.
// The snapshot has 9,792 bytes. By hand the 82 lines are clone.go: a clone for each kind of value,
// and a sum that names each field again. Three of these lines are easy to get wrong. A pointer from
// one object to another (the shot that a fighter steers) must lead to the clone's object. A map
// must be summed in the order of its keys. And a restored snapshot must be cloned once more,
// because a frame without an input goes back to the same snapshot again. In a region these lines
// aren't needed: a handle names the shot in each snapshot. A program by hand can reuse the memory
// of clones, which makes less garbage but takes more lines. Ikemen GO, an engine of fighting games
// in Go, does so in 34,000 characters of src/state_clone.go.
//
// The typical fault by hand is a clone that forgets one of its twelve fields. Then the game plays
// on in memory that a snapshot shares. TestForgottenFields forgets each field in turn, and compares
// each frame's sum with the sum of a machine that never went back. The test finds seven fields
// within 100 frames, and four after 880 to 2,340 frames (buffs, trails, combos and events are
// seldom used). It finds the results of rounds after 33,996 frames, which is nine minutes of play.
// Pull requests of Ikemen GO (2640, 3776) and of 3sx (298) fix fields that their snapshots had
// forgotten.
//
// A region can't forget: its snapshot is all bytes between Begin and NewRing.
// TestTheRegionForgetsNothing finds each number of the state by reflection, changes it, and sees
// the hash change and the Restore bring it back. A Go variable outside of the state isn't restored;
// a checked build reports a write to the load's bytes from before Begin.
//
// If the region is too small, the load returns an error that names the size to set. During play a
// full pool or list refuses a new element, and the fight goes on without the 129th spark. Both
// programs follow this rule, so that their fights stay equal. A ninth snapshot replaces the oldest
// snapshot.
package fight

// Package disk is the files of a server: the saves of its rooms, the inputs of each map that was
// played, and the scores; and demos. What a server does in play (Write, Append, Sync) allocates nothing on the
// Go heap, but for an error; opening does.
//
// All numbers are little-endian, all sums CRC32C (Castagnoli), all bytes that are not named zero.
// Who reads believes nothing: an error names the byte. Nor does a file's size take memory: a save
// has at most [SaveMost] bytes, a record [RecordMost], which writers keep to as well, and of scores
// 64 KiB are looked at at once. Names and maps end in zeros.
//
// A save, room-07.a or room-07.b ([Saves]), is a header of 512 bytes and a file of package
// budget/save:
//
//	  0  "frogsave"
//	  8  version 2          u32
//	 12  room               u32
//	 16  serial             u64   of the room's saves, from 1; the larger is the newer
//	 24  tick, epoch        u32, u32
//	 32  seed               u64
//	 40  size of the file   u64
//	 48  sum of the file    u32
//	 56  map                8 bytes
//	 64  names of players   16 × 16 bytes
//	320  sum of the map     u64
//	508  sum of bytes 0 to 507
//
// The two are written in turn, each beside, as room-07.a.new, and given its name once it is on the
// disk. So a crash at any time leaves files that are whole, or not there, and the other as it was. A
// file whose header is zeros, as far as it goes, is none: an earlier version wrote the header last.
//
// The inputs of an epoch, room-07-0003.inputs ([Record] writes, [Replay] reads), are a header of 72
// bytes, the state that it began with, and the ticks:
//
//	 0  "froginpt"
//	 8  version 2           u32
//	12  room, epoch         u32, u32
//	20  players             u32
//	24  seed                u64
//	32  first tick          u32
//	36  sum of the state    u32
//	40  map                 8 bytes
//	48  size of the state   u64   0: it began fresh, with tick 0
//	56  sum of the map      u64
//	68  sum of bytes 0 to 67
//	72  the state, a file of package budget/save
//
// Each tick is 12 bytes a player, a game.Input as it lies, and u32, the sum of these and of the
// tick's number as u32. What follows the last whole tick is torn: a crash cut it off. A tick that
// isn't whole, before one that is, is damage.
//
// A demo, the inputs of a game without a network from its first tick on ([WriteDemo], [ReadDemo]), is
// a header of 64 bytes, and 12 bytes for each player in each tick:
//
//	 0  "frogdemo"
//	 8  version 1           u32
//	12  players             u32
//	16  seed                u64
//	24  map                 8 bytes
//	32  sum of the map      u64
//	40  ticks               u64
//	60  sum of bytes 0 to 59
//
// The sum of a map is doom.Level.Sum: what was saved or recorded of one map doesn't go on with
// another that has its name.
//
// Scores are appended to one file ([Scores]), 64 bytes each. Of a player in an epoch there may be
// many: what it came to by then.
//
//	 0  "FSC1"; the digit is the version
//	 4  room, player        u16, u16
//	 8  seconds since 1970  i64
//	16  name                16 bytes
//	32  map                 8 bytes
//	40  epoch               u32
//	44  tick                u32
//	48  caught, deaths, exits  u32 each
//	60  sum of bytes 0 to 59
package disk

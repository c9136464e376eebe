// Package disk reads and writes a server's files: saves, records of inputs, scores, and demos. The
// writers for use in play ([Saves.Write], [Record.Append], [Scores.Append] and the Syncs) make no
// Go allocation except for an error. Opening a file allocates.
//
// Numbers are little-endian, sums are CRC32C (Castagnoli), unnamed bytes are zero, and names and
// maps are padded with zeros. Readers check every value, and an error names the wrong byte. A large
// file can't exhaust memory: readers and writers accept saves of at most [SaveMost] bytes and
// records of at most [RecordMost] bytes, and scores are read 64 KiB at a time.
//
// A save is a file room-07.a or room-07.b ([Saves]). It is a header of 512 bytes, then a file of
// package budget/save:
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
// The two files of a room are written in turn. A file is written as room-07.a.new, synced, and
// renamed. So after a crash at any time, each of the two is whole or absent, and the other file is
// as before. A file with a header of zeros isn't a save: an earlier version of this package wrote
// the header last.
//
// A record has the inputs of an epoch. [Record] writes it, for example as room-07-0003.inputs, and
// [Replay] reads it. It is a header of 72 bytes, the state before the first tick, and the ticks:
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
// A tick has 12 bytes for each player, which are a game.Input in memory order. A u32 follows: the
// sum of these bytes and of the tick's number as u32. Bytes after the last whole tick are torn: a
// crash cut off the rest of their tick. A damaged tick before a whole tick is an error.
//
// A demo has the inputs of a game without a network, from the first tick on ([WriteDemo],
// [ReadDemo]). It is a header of 64 bytes, and 12 bytes for each player in each tick:
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
// The sum of a map is doom.Level.Sum. By this sum, readers refuse a save or record of another map
// with the same name.
//
// Scores are appended to one file ([Scores]), 64 bytes each. A player may have several scores in an
// epoch, each with the results so far.
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

// Package doom reads Doom's file formats into a region of the budget:
//
//	library, err := doom.OpenLibrary(init, []string{"freedoom1.wad"}, seed)
//	maps, err := library.Maps()
//	level, err := maps[0].Load(s, region.Base())
//
// A [Level] has vertexes, sectors, lines, things, starts and a blockmap, which refer to each other
// by offsets. Every value of a file is checked before use. For the first bad value, the error is a
// [BadWAD] that names the value's byte.
//
// The package also has fixed-point places, random numbers and a hash. These are the same on every
// machine. [BuiltinWAD] has levels without a file. Package doomtest makes files for tests.
package doom

// Package doom reads Doom's file formats, and knows the map as it lies in a region of the budget.
//
// [OpenLibrary] reads the lump tables of WAD files, [Library.Maps] lists their maps, and [Map.Load]
// makes a [Level] of one: its vertexes, sectors, lines, things, starts and blockmap, which refer to
// each other by offsets. Nothing in a file is believed; what makes no sense is a [BadWAD], which
// names the byte. Beside it stand the fixed point that places are in, the draws and the hash that
// every machine agrees on, and the levels that need no file ([BuiltinWAD]). Package doomtest makes
// files for tests.
package doom

// Package lua is a client that nobody here wrote: Debian's Lua 5.4 with all its memory in one of our heaps. Its test
// compiles client.c with the C core, without Go, and skips where cc or liblua5.4-dev is missing.
package lua

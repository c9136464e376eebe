// Package tests holds what crosses packages: the layers, their exported names, the style, the README, and a program outside
// of this module.
// The folders beside it are frogpond, the game server that is the library's main job; conformance, the suite that every
// arena passes; misuse and race, programs that do what they must not; c, the core without Go; lua, Lua on a heap; bench;
// same, which compares frogpond's reports; and suggest, which makes a plan of them.
package tests

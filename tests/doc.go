// Package tests holds what crosses packages: the layers, the style, the README, and a program outside of this module.
// The folders beside it are frogpond, the game server that is the library's main job; conformance, the suite that every
// arena passes; c, the core without Go; bench; and same, which compares frogpond's reports.
package tests

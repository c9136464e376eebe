// Package tests holds what crosses packages: the layers, their exported names, the style, the README, and a program outside
// of this module.
// The folders beside it are frogpond, the game server that is the library's main job; conformance, the suite that every
// arena passes; misuse and race, programs that do what they must not; model, random programs beside a model of
// scopes and budget, and below it schedules, every schedule of a few operations on regions; c, the core without Go;
// clients, which tests each module that puts somebody else's library into a budget; and bench.
package tests

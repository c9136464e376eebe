// Package tests holds the tests that cross packages: the layers, their exported names, the style,
// the pages, and programs outside of this module.
//
// The folders next to it:
//
//   - pond is a small room server to copy; frogpond is the game server that the library is for.
//     copy makes a module of either.
//   - tiles is a world that streams around a player, the example of package scope/cache.
//   - moving has a program before and after a part of it moved into a budget.
//   - conformance is the suite that every arena passes.
//   - model runs random programs and compares them with a model of scopes and budget;
//     model/schedules runs every schedule of a few operations on regions.
//   - misuse and race are programs with a fault each, and controls without it.
//   - c tests the core without Go; malloc runs programs in C over package arena/with/malloc, and
//     full runs SQLite and tree-sitter in a heap that is full.
//   - clients tests each module that puts another library into a budget.
//   - sidecar is a fake of Agones' SDK server.
//   - others runs programs that use libraries of other people, in a budget and on the Go heap.
//   - bench counts and measures; page is a browser; fleet is Kubernetes' scheduler.
//   - strangers has programs written by the docs alone, and careful twins in Go.
//   - mutants puts known faults into the code and expects a test to fail.
//   - run runs the steps test, check, gate and soak, and builds for other machines; step names
//     the current step to a test.
package tests

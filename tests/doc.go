// Package tests holds the tests that cross packages: tests of the layers, the exported names, the
// style and the pages, and of programs outside of this module.
//
// The folders below it:
//
//   - pond is a small room server to copy.
//   - frogpond is a game server, the kind of program that the library is for.
//   - copy makes a module of your own from pond or frogpond.
//   - atlas is a server of map tiles, whose map and colors are loaded apart.
//   - tiles is a world that streams around a player, the example of package scope/cache.
//   - moving has a program twice: on the Go heap, and with its hot data moved into a budget.
//   - conformance is the suite that every arena passes.
//   - model runs random programs and compares them with a model of scopes and budget.
//     model/schedules runs every schedule of a few operations on regions.
//   - misuse and race have programs with one fault each, and controls without the fault.
//   - core tests the C core without Go, by the programs in c.
//   - malloc runs programs in C over package arena/with/malloc.
//   - full runs SQLite and tree-sitter until C's malloc is full.
//   - group runs a process in a memory cgroup with the sum of its plan.
//   - clients tests each module that puts another library into a budget.
//   - sidecar is a fake of Agones' SDK server.
//   - others runs programs that use other people's libraries, with upfront and as published.
//   - bench measures times and counts instructions.
//   - page drives a browser over frogpond's pages.
//   - fleet places servers with Kubernetes' scheduler.
//   - strangers has programs written from the docs only, and careful twins in Go.
//   - mutants puts known faults into the code and expects a test to fail.
//   - run runs the steps test, check, gate and soak, and builds for other machines.
//   - step reports the current step to a test.
package tests

// Command plain runs the work with the malloc of the process: glibc's malloc, or a preloaded
// malloc.
package main

import "github.com/upfront-mem/upfront/tests/bench/resident/work"

func main() { work.Main(0, nil) }

// Command plain is the work on the malloc of the process: glibc's, or a preloaded one.
package main

import "github.com/upfront-mem/upfront/tests/bench/resident/work"

func main() { work.Main(0, nil) }

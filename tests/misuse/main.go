// Misuse is the misuse table: each way to use this library wrongly, with a program that does it and
// the answer of each build.
//
//	misuse               prints the table, a row for each answer, as README.md has it
//	misuse NAME          runs the program NAME, which commits the misuse
//	misuse -right NAME   runs it without the one wrong step
//
// The programs are in the files next to this file, by theme. Each program is below its lines of the
// table. A program that a build doesn't stop ends with "done".
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	right := flag.Bool("right", false, "leave out the step that is wrong")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Print(table())
		return
	}
	for _, l := range lines() {
		for _, p := range l.programs {
			if p.name == flag.Arg(0) {
				p.run(!*right)
				fmt.Println("done")
				return
			}
		}
	}
	fmt.Fprintln(os.Stderr, "misuse: there is no program", flag.Arg(0))
	os.Exit(3)
}

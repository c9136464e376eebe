// Misuse is the misuse table: what this library can be used wrongly for, one program each, and what each build says to it.
//
//	misuse               prints the table, a row for each answer, as README.md has it
//	misuse NAME          runs the program NAME, which commits the misuse
//	misuse -right NAME   runs it without the one step that is wrong
//
// The programs stand by theme in the files beside this one, below their lines of the table. A program that a build
// doesn't stop ends with "done".
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

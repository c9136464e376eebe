// Command upfront is the project's tool.
//
//	upfront flow check|compile|draw|trace|export FILE
//	upfront save diff A B | show FILE
//
// Install it from a checkout: cd budget/cmd && go install ./upfront
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	if err := newCommand().Execute(); err != nil {
		if text := err.Error(); text != "" {
			fmt.Fprintln(os.Stderr, text)
		}
		os.Exit(codeOf(err))
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "upfront",
		Short:         "tools for graphs of level scripts, and for snapshots of a game's state",
		SilenceErrors: true, // main prints it
		SilenceUsage:  true, // of a faulty graph the faults are enough
	}
	root.AddCommand(newFlowCommand(), newSaveCommand())
	return root
}

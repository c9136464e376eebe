// Command upfront is the project's tool.
//
//	upfront flow check|compile|draw|trace|export FILE
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
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "upfront",
		Short:         "tools for graphs of level scripts",
		SilenceErrors: true, // main prints it
		SilenceUsage:  true, // of a faulty graph the faults are enough
	}
	root.AddCommand(newFlowCommand())
	return root
}

package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/upfront-mem/upfront/budget/cmd/upfront-vet/lifetime"
)

func main() { multichecker.Main(lifetime.Analyzers...) }

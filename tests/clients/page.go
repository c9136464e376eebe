package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/upfront-mem/upfront/tests/clients/paired"
)

const figuresBegin, figuresEnd = "<!-- figures -->\n", "<!-- /figures -->\n"

func writePage(name string, figures []paired.Figure) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	page, err := between(string(text), table(figures))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(name, []byte(page), 0o644)
}

func between(page, table string) (string, error) {
	head, rest, begins := strings.Cut(page, figuresBegin)
	_, tail, ends := strings.Cut(rest, figuresEnd)
	if !begins || !ends {
		return "", fmt.Errorf("no place between %q and %q", strings.TrimSpace(figuresBegin),
			strings.TrimSpace(figuresEnd))
	}
	return head + figuresBegin + table + figuresEnd + tail, nil
}

func table(figures []paired.Figure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "`go run ./tests/clients -readme`, %s:\n\n| work | µs | of the default's | garbage, bytes | of "+
		"the default's |\n|---|--:|--:|--:|--:|\n", machine())
	for _, f := range figures {
		fmt.Fprintf(&b, "| %s | %.1f | %.2f | %.0f | %.2g |\n", f.Name, f.Nanoseconds/1000, f.Ratio, f.Garbage,
			f.GarbageRatio)
	}
	return b.String()
}

// machine returns the date, the processor, and Go's version.
func machine() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	_, model, _ := strings.Cut(string(text), "model name\t: ")
	model, _, _ = strings.Cut(model, "\n")
	if model == "" {
		model = runtime.GOARCH
	}
	return fmt.Sprintf("%s, %s, %d cores; %s", time.Now().Format(time.DateOnly), model, runtime.NumCPU(),
		runtime.Version())
}

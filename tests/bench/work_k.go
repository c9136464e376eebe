package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

var workK = work{
	letter: "K", title: "caches of 40 MiB resident, with keys of 16 bytes",
	absent: "The program is in the folder caches, a module of its own, with the other caches. Each figure is from a " +
		"process of its own. No cache: the same program, which sets and finds nothing.",
	columns: []string{library, "fastcache", "freecache", "bigcache", "ristretto", "otter", "theine", "no cache"},
	page:    "caches/README.md",
	parts:   []part{{name: "K", measure: measureK}},
}

// The rows of K with goals. The program works them out from all rows.
const (
	residentK = "K goal: resident, the most of all rows"
	lostK     = "K goal: rows with fewer hits than the best peer"
	hitsK     = "K goal: hits of the best peer, in the worst row"
	getK      = "K goal: Get, of the fastest peer that bounds bytes, in the worst row"
	setK      = "K goal: Set, of the fastest peer that bounds bytes, in the worst row"
)

func measureK(h *harness) (list []series, err error) {
	program, err := h.programs.build("caches", []string{"go", "build", "-C", "caches"}, ".")
	if err != nil {
		return nil, err
	}
	c := exec.Command(program, fmt.Sprintf("-short=%t", h.short))
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("caches: %w", err)
	}
	for lines := json.NewDecoder(bytes.NewReader(out)); ; {
		var f struct {
			Work, Unit, Who string
			Value           float64
		}
		if err := lines.Decode(&f); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("caches: %w", err)
		}
		x := newSeries(f.Work, f.Unit, f.Who)
		x.values = []float64{f.Value}
		list = append(list, x)
	}
}

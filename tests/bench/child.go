package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// children are works that run in a process of their own: this program, which prints figures by
// name.
var children = map[string]func(who string) map[string]float64{"E": childE, "count": childCount, "loop": childLoop}

func inside(args []string) {
	if err := json.NewEncoder(os.Stdout).Encode(children[args[0]](args[1])); err != nil {
		panic(err)
	}
}

// child runs this program as one contestant of the work, and returns the figures.
func child(work, who string) (figures map[string]float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return figuresOf(exec.Command(self, "-child", work, who))
}

// figuresOf runs a program that prints figures by name.
func figuresOf(c *exec.Cmd) (figures map[string]float64, err error) {
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	if err == nil {
		err = json.Unmarshal(out, &figures)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(c.Args, " "), err, said.String())
	}
	return figures, nil
}

// inChildren runs each contestant in a process of its own, `rounds` times in turn, and checks that
// all have the same "sum".
func inChildren(work string, rounds int, who []string, figures []figure) ([]series, error) {
	list := make([]series, 0, len(who)*len(figures))
	for _, f := range figures {
		for _, w := range who {
			list = append(list, newSeries(work+" "+f.name, f.unit, w))
		}
	}
	var sum float64
	for round := range rounds {
		for i, w := range who {
			got, err := child(work, w)
			if err != nil {
				return nil, err
			}
			if i == 0 && round == 0 {
				sum = got["sum"]
			}
			if got["sum"] != sum {
				return nil, fmt.Errorf("%s left %v, %s left %v: their work differs", w, got["sum"], who[0], sum)
			}
			for k, f := range figures {
				if v, ok := got[f.name]; ok {
					s := &list[k*len(who)+i]
					s.values = append(s.values, v)
				}
			}
		}
	}
	return slices.DeleteFunc(list, func(s series) bool { return len(s.values) == 0 }), nil
}

// variants are this program compiled another way: with each fast path through the bindings, or with
// the arena experiment. Their rows have the variant's name.
var variants = []struct{ suffix, who string }{{"-cgo", crossing}, {"-arenas", goArena}}

// inVariants measures the variants' contestants of a loop, a process each.
func inVariants(l loop) (list []series, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for _, v := range variants {
		if _, missing := os.Stat(self + v.suffix); missing != nil {
			fmt.Fprintf(os.Stderr, "bench: %s%s isn't there; its rows will be missing\n", self, v.suffix)
			continue
		}
		got, err := figuresOf(exec.Command(self+v.suffix, "-child", "loop", l.name))
		if err != nil {
			return nil, err
		}
		x := newSeries(l.name, l.unit, v.who)
		for name, value := range got {
			if name == "allocs" {
				x.allocs = value
			} else {
				x.values = append(x.values, value)
			}
		}
		if len(x.values) > 0 {
			list = append(list, x)
		}
	}
	return list, nil
}

// childLoop measures this variant's contestants of a loop, a value a round.
func childLoop(name string) map[string]float64 {
	l, _ := findLoop(name)
	list, err := (&harness{rounds: 25, time: 10 * time.Millisecond, only: []string{offered}}).loop(l)
	if err != nil {
		panic(err)
	}
	figures := map[string]float64{}
	for _, s := range list {
		figures["allocs"] = s.allocs
		for round, value := range s.values {
			figures[strconv.Itoa(round)] = value
		}
	}
	return figures
}

type figure struct{ name, unit string }

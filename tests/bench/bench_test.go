package main

import (
	"math"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// TestAllDoTheSame runs each loop's contestants shortly: those that leave something else behind are an error.
func TestAllDoTheSame(t *testing.T) {
	h := &harness{rounds: 1, time: time.Microsecond}
	for _, w := range works {
		for _, l := range w.loops {
			if l.once && testing.Short() {
				continue
			}
			list, err := h.loop(l)
			if err != nil {
				t.Errorf("%s: %v", l.name, err)
			}
			for _, s := range list {
				if len(s.values) != 1 || s.values[0] <= 0 {
					t.Errorf("%s: %s took %v", l.name, s.who, s.values)
				}
			}
		}
	}
}

// TestWhoDoesLessIsRefused: an object that isn't zeroed, one that wasn't written to, and one too few.
func TestWhoDoesLessIsRefused(t *testing.T) {
	for name, wrong := range map[string]func(memory []object, i int) bool{
		"not zeroed":  func(m []object, i int) bool { m[i][0] = uint64(i); return true },
		"not written": func(m []object, i int) bool { m[i] = object{}; return true },
		"too few":     func(m []object, i int) bool { m[i] = object{uint64(i)}; return i != 7 },
	} {
		memory := make([]object, objectCount)
		lazy := contestant{who: "lazy", run: func(int) uint64 {
			newest := uintptr(0)
			for i := range memory {
				if wrong(memory, i) {
					memory[i][1] = uint64(newest)
					newest = uintptr(unsafe.Pointer(&memory[i]))
				}
			}
			return look(newest, objectWords)
		}}
		h := &harness{rounds: 1, time: time.Microsecond}
		_, err := h.loop(loop{name: "A", units: objectCount, enter: func() []contestant { return []contestant{objectsC(), lazy} }})
		if err == nil || !strings.Contains(err.Error(), "they don't do the same") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRatiosAreOfTheSameRound(t *testing.T) {
	var all table
	all.add(work{letter: "X"}, []series{
		{work: "X", unit: "thing", who: floor, values: []float64{10, 100, 1000}},
		{work: "X", unit: "thing", who: library, values: []float64{20, 200, 500}},
		{work: "X other", unit: "thing", who: library, values: []float64{1, 1, 1}},
	})
	r, _ := all.find("X", library)
	if r.median != 200 || r.floor != 2 || !math.IsNaN(r.heap) || r.spread != "20.0 to 500" {
		t.Errorf("%+v", r)
	}
	if r, _ := all.find("X other", library); !math.IsNaN(r.floor) {
		t.Errorf("%+v has no floor", r)
	}
	var csv strings.Builder
	all.csv(&csv)
	if want := "X,upfront,200,2.00,,0\n"; !strings.Contains(csv.String(), want) {
		t.Errorf("no %q in %q", want, csv.String())
	}
}

package main

import (
	"encoding/json"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/upfront-mem/upfront/tests/step"
)

// TestTheTwin checks that frogpond's twin on the Go heap reaches the same states, also with
// rollbacks.
func TestTheTwin(t *testing.T) {
	step.Needs(t, step.Check)
	folder := t.TempDir()
	programs := map[string]string{}
	for _, who := range []string{library, byHand, goHeap} {
		if who == goHeap && step.Now() < step.Gate {
			continue
		}
		program, err := buildPond(folder, who)
		if err != nil {
			t.Fatal(err)
		}
		programs[who] = program
	}
	t.Run("goes back", func(t *testing.T) { twinGoesBack(t, programs) })
	t.Run("serves", func(t *testing.T) { twinServes(t, folder, programs) })
}

// twinGoesBack checks that a map with late inputs ends in the same state as without, and in the
// same state with upfront. It also checks that an incomplete restore is detected.
func twinGoesBack(t *testing.T, programs map[string]string) {
	want := playBuiltin(t, programs[library], "-rollback", "8")
	for who, program := range programs {
		for i, row := range playBuiltin(t, program, "-rollback", "8") {
			if row.Desyncs != 0 || row.Resimulated == 0 || row.Hash != want[i].Hash {
				t.Errorf("%s: %+v, not %+v", who, row, want[i])
			}
		}
		for _, row := range playBuiltin(t, program, "-synctest", "-plant", "reset") {
			if row.Desyncs == 0 {
				t.Errorf("%s: nobody saw what wasn't put back on %s", who, row.Name)
			}
		}
	}
}

// twinServes replays the records of a server with late inputs: upfront must reach the same states.
// The machine decides how many inputs are late, so the test plays longer until some are.
func twinServes(t *testing.T, folder string, programs map[string]string) {
	d := &duel{folder: folder, ours: programs[library], twin: programs[byHand], memory: "256MiB",
		rooms: 2, time: 2 * time.Second, network: []string{"-loss", "5", "-jitter", "250ms"}}
	said := served{}
	for said.figure("resimulated_ticks") == 0 && d.time < time.Minute {
		var err error
		said, err = d.playTwin()
		if err != nil && !errors.Is(err, errFew) {
			t.Fatal(err)
		}
		d.time *= 2
	}
	if said.figure("resimulated_ticks") == 0 {
		t.Errorf("nothing was played again: %v", said)
	}
}

type playedRow struct {
	Name, Hash  string
	Desyncs     int
	Resimulated int `json:"resimulated_ticks"`
}

func playBuiltin(t *testing.T, program string, more ...string) []playedRow {
	t.Helper()
	out, err := exec.Command(program, append([]string{"-json", "-wad", "builtin", "-ticks", "350"},
		more...)...).Output()
	var failed *exec.ExitError
	if err != nil && !(errors.As(err, &failed) && len(out) > 0) {
		t.Fatal(err)
	}
	var r struct{ Levels []playedRow }
	if err := json.Unmarshal(out, &r); err != nil || len(r.Levels) == 0 {
		t.Fatal(err, string(out))
	}
	return r.Levels
}

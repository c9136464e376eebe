package main

import (
	"encoding/json"
	"errors"
	"os/exec"
	"testing"
)

// TestTheTwinGoesBack: on the Go heap a map that is played with late inputs ends as it does without,
// and as frogpond's does; and who doesn't put all back is seen.
func TestTheTwinGoesBack(t *testing.T) {
	folder := t.TempDir()
	ponds := map[string]string{}
	for _, who := range []string{library, byHand, goHeap} {
		if testing.Short() && who == goHeap {
			continue
		}
		program, err := buildPond(folder, who)
		if err != nil {
			t.Fatal(err)
		}
		ponds[who] = program
	}
	want := playBuiltin(t, ponds[library], "-rollback", "8")
	for who, program := range ponds {
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

type playedRow struct {
	Name, Hash  string
	Desyncs     int
	Resimulated int `json:"resimulated_ticks"`
}

func playBuiltin(t *testing.T, program string, more ...string) []playedRow {
	t.Helper()
	out, err := exec.Command(program, append([]string{"-json", "-wad", "builtin", "-ticks", "700"}, more...)...).Output()
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

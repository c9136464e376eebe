package model_test

import (
	"bytes"
	"errors"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
)

// replay repeats the program's operations on its budget, which is closed, and compares the peak of
// each arena.
func (w *world) replay() {
	if w.recording == nil {
		return
	}
	w.check(w.recording.Close() == nil, "the recording")
	report, played, err := record.Replay(plan(), bytes.NewReader(w.recorded.Bytes()))
	w.check(err == nil && played.Whole, "replay of %d events: %v", played.Events, err)
	again := report.Arenas
	for i, was := range w.b.Report().Arenas {
		w.check(was.Peak == again[i].Peak, "%s: a peak of %d, and of %d in the replay",
			was.Name, was.Peak, again[i].Peak)
		w.check(was.MostOpen == again[i].MostOpen, "%s: %v open at most, and %v in the replay", was.Name, was.MostOpen,
			again[i].MostOpen)
	}
	w.did["replayed"]++
	w.tooSmall(w.b.Report())
}

// tooSmall replays with one byte less than the fullest region needs.
func (w *world) tooSmall(report budget.Report) {
	level := report.Arena(plan().Regions[2].Name)
	if level.Peak < 2 {
		return
	}
	const line = 64 // the alignment of temporaries
	smaller := plan()
	smaller.Regions[2].Size = max(1, (level.Peak-1)/line*line)
	_, _, err := record.Replay(smaller, bytes.NewReader(w.recorded.Bytes()))
	w.check(errors.Is(err, budget.ErrFull), "a replay with less than the peak: %v", err)
	w.did["replay full"]++
}

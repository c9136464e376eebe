package live

import (
	"bytes"
	"encoding/csv"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/budget/timeline"
)

// csvOf returns a line for each sample: its first tick, the most bytes of each arena, and its
// marks.
func csvOf(d timeline.Data) ([]byte, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	row := []string{"tick"}
	samples := 0
	for _, line := range d.Arenas {
		row = append(row, line.Name)
		samples = max(samples, len(line.Most))
	}
	_ = w.Write(append(row, "marks")) // a buffer never fails; Error has other errors
	for i := range samples {
		row = append(row[:0], strconv.FormatUint(uint64(i)*d.Step, 10))
		var marks []string
		for _, line := range d.Arenas {
			row = append(row, strconv.FormatUint(line.Most[i], 10))
			if line.Marks != nil && line.Marks[i] != 0 {
				marks = append(marks, line.Name+": "+line.Marks[i].String())
			}
		}
		_ = w.Write(append(row, strings.Join(marks, "; ")))
	}
	w.Flush()
	return out.Bytes(), w.Error()
}

package live

import (
	"bytes"
	"encoding/csv"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/budget"
)

// chart is a timeline as the page draws it: a line for each region, not for each slot.
type chart struct {
	Step  uint64      `json:"step"` // ticks a sample
	Ticks uint64      `json:"ticks"`
	Parts []chartPart `json:"parts"`
}

// chartPart are the arenas of a region, by sample.
type chartPart struct {
	Name    string        `json:"name"`
	Arenas  int           `json:"arenas"`
	Size    uint64        `json:"size"`    // of the largest
	Whole   uint64        `json:"whole"`   // of all
	Fullest []uint64      `json:"fullest"` // what one of them held at most
	All     []uint64      `json:"all"`     // the sum of what each held at most: together they held this or less
	Marks   []budget.Mark `json:"marks"`
}

func newChart(d budget.TimelineData) chart {
	c := chart{Step: d.Step, Ticks: d.Ticks}
	index := map[string]int{}
	for _, line := range d.Arenas {
		region := line.Part
		i, there := index[region]
		if !there {
			i = len(c.Parts)
			index[region] = i
			c.Parts = append(c.Parts, chartPart{Name: region, Fullest: make([]uint64, len(line.Most)),
				All: make([]uint64, len(line.Most)), Marks: make([]budget.Mark, len(line.Most))})
		}
		c.Parts[i].add(line)
	}
	return c
}

func (p *chartPart) add(line budget.ArenaLine) {
	p.Arenas++
	p.Size = max(p.Size, line.Size)
	p.Whole += line.Size
	for i, most := range line.Most {
		p.Fullest[i] = max(p.Fullest[i], most)
		p.All[i] += most
	}
	for i, mark := range line.Marks {
		p.Marks[i] |= mark
	}
}

// csvOf has a line for each sample: its first tick, the most bytes of each arena, and what happened.
func csvOf(d budget.TimelineData) ([]byte, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	row := []string{"tick"}
	samples := 0
	for _, line := range d.Arenas {
		row = append(row, line.Name)
		samples = max(samples, len(line.Most))
	}
	_ = w.Write(append(row, "marks")) // a buffer takes all; Error tells of the rest
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

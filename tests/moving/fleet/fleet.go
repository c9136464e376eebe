// Package fleet is a day of a fleet of machines, as messages to a program that keeps samples.
package fleet

import (
	"fmt"
	"time"
)

// Sample is one sample of a series.
type Sample struct {
	At    time.Time
	Value float64
	Unit  string
}

var kinds = [...]struct{ name, unit string }{{"cpu", "%"}, {"memory", "MB"}, {"latency", "ms"}}

// machine is a machine of the fleet: its number, and the names of its series.
type machine struct {
	number int
	series [len(kinds)]string
}

func newMachine(number int) machine {
	m := machine{number: number}
	for i, kind := range kinds {
		m.series[i] = fmt.Sprintf("web-%03d/%s", number, kind.name)
	}
	return m
}

// Day calls add for each sample of a day. Each machine has three series, and each series has a
// sample a minute. Each hour a new machine replaces an old one, and Day calls drop for the old
// machine's series. It returns the series of the first and of the last machine.
func Day(machines int, add func(series string, x Sample), drop func(series string)) []string {
	var fleet []machine
	for number := range machines {
		fleet = append(fleet, newMachine(number))
	}
	at := time.Date(2026, time.November, 26, 0, 0, 0, 0, time.UTC)
	for minute := range 24 * 60 {
		if hour := minute / 60; minute%60 == 30 {
			for _, series := range fleet[hour%machines].series {
				drop(series)
			}
			fleet[hour%machines] = newMachine(machines + hour)
		}
		for _, m := range fleet {
			for i, series := range m.series {
				value := float64((m.number*31+i*17+minute*7)%397) / 4
				add(series, Sample{at, value, kinds[i].unit})
			}
		}
		at = at.Add(time.Minute)
	}
	return append(fleet[0].series[:], fleet[machines-1].series[:]...)
}

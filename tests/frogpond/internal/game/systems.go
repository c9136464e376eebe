package game

import "github.com/upfront-mem/upfront/scope"

// Systems holds the objects that outlive a map, in the region systems. After every tenth map the
// program rewinds the region and builds them again, as after a change of settings.
type Systems struct {
	log       log
	Durations []uint32 // of each tick, in nanoseconds
}

func loadSystems(s scope.Scope, logName string, ticks int) (*Systems, error) {
	sys := &Systems{}
	var err error
	if sys.log, err = openLog(s, logName); err != nil {
		return nil, err
	}
	sys.Durations = countMaker.Slice(s, ticks)
	sys.log.note("systems", "built for ticks", uint64(ticks))
	return sys, nil
}

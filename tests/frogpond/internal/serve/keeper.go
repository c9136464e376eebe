package serve

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/disk"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
)

// keeper writes files. The workers' data stays in the plan's memory until it is written. If the
// disk is full or slow, a record ends or a save is lost, and the loss is counted; no room waits.
type keeper struct {
	s       *Server
	images  []image
	turn    int // of the next image to check
	scores  []disk.Score
	written time.Duration // when scores were written
	lost    atomic.Uint64 // writes that the disk refused
	said    atomic.Bool
}

// image is memory for the save of a room on its way to the disk.
type image struct {
	room  *room
	head  *disk.SaveHead
	bytes []byte // all the memory
	file  []byte
	full  atomic.Uint32 // the owner: 0 none, 1 a worker fills it, 2 the keeper writes it
}

var (
	byteMaker  = scope.Plain[byte]()
	headMaker  = scope.Plain[disk.SaveHead]()
	scoreMaker = scope.Plain[disk.Score]()
)

const (
	images    = 4         // saves on their way at once
	imageMost = 256 << 10 // bytes of one
	scoreMost = 64        // the most scores of a room that wait

)

func newKeeper(s *Server, in scope.Scope) *keeper {
	k := &keeper{s: s}
	if s.o.Saves != "" {
		k.images = make([]image, images)
	}
	for i := range k.images {
		k.images[i].bytes = byteMaker.SliceCap(in, 0, imageMost)
		k.images[i].head = headMaker.New(in)
	}
	if s.o.Scores != "" {
		k.scores = scoreMaker.SliceCap(in, 0, scoreMost)
	}
	return k
}

// scoreTime is the time between a room's scores, and between their writes. So a score is on the
// disk within a second, unless the disk is slow.
const scoreTime = time.Second / 3

func (k *keeper) loop() {
	for !k.s.stopping.Load() {
		k.writeImage()
		for _, r := range k.s.rooms {
			k.writeLog(r)
		}
		if now := k.s.now(); now-k.written > scoreTime {
			k.written = now
			k.writeScores()
		}
		time.Sleep(nap)
	}
}

// check counts a refused write, and reports the first one.
func (k *keeper) check(err error) {
	if err == nil {
		return
	}
	k.lost.Add(1)
	if !k.said.Swap(true) {
		k.s.say(fmt.Errorf("%w; play goes on", err))
	}
}

// writeImage writes one save, if one waits. The images take turns. It doesn't write all of them,
// because the disk may be slow, and inputs wait meanwhile.
func (k *keeper) writeImage() {
	for range k.images {
		m := &k.images[k.turn]
		k.turn = (k.turn + 1) % len(k.images)
		if m.full.Load() == 2 {
			k.check(k.s.saves.Write(m.room.number, m.head, m.file))
			m.room.saving.Store(false)
			m.full.Store(0)
			return
		}
	}
}

// writeLog writes the inputs of a room, and closes the records of maps that ended.
func (k *keeper) writeLog(r *room) {
	for _, p := range []*atomic.Pointer[play]{&r.recording, &r.gone} {
		if p := p.Load(); p != nil && !p.closed.Load() {
			over := p.over.Load() // read before the inputs
			k.writeInputs(p)
			if over {
				k.closeRecord(p)
			}
		}
	}
}

func (k *keeper) writeInputs(p *play) {
	if p.record == nil {
		return
	}
	for list := p.inputs.some(); len(list) > 0; list = p.inputs.some() {
		if err := p.record.Append(list); err != nil && !p.failed { // Append repeats its error
			p.failed = true
			k.s.unrecorded.Add(1)
			k.check(err)
		}
		p.inputs.done(list)
	}
}

func (k *keeper) closeRecord(p *play) {
	if p.record != nil {
		if err := p.record.Close(); !p.failed {
			k.check(err)
		}
	}
	p.closed.Store(true)
}

func (k *keeper) writeScores() {
	if k.s.scores == nil {
		return
	}
	for _, r := range k.s.rooms {
		k.scores = r.scores.take(k.scores[:0])
		if len(k.scores) > 0 {
			k.check(k.s.scores.Append(k.scores))
		}
	}
	k.check(k.s.scores.Sync())
}

// finish ends a room whose worker has stopped, and writes all its data to the disk.
func (k *keeper) finish(r *room) error {
	r.scoreAll(k.s.now())
	for range k.images {
		k.writeImage()
	}
	var err error
	if p := r.play; p != nil {
		r.log(p.tick)
		p.over.Store(true)
		if k.s.saves != nil {
			err = k.save(r)
		}
	}
	k.writeLog(r)
	if p := r.next.Load(); p != nil && p.record != nil { // not played
		k.check(p.record.Remove())
	}
	k.writeScores()
	return err
}

func (k *keeper) save(r *room) error {
	for i := range k.images {
		if m := &k.images[i]; m.full.Load() == 0 {
			if err := m.fill(r); err != nil {
				return err
			}
			k.writeImage()
			return nil
		}
	}
	return errors.New("no room for a save")
}

// image returns an image for a worker to fill, or nil.
func (k *keeper) image() *image {
	for i := range k.images {
		if k.images[i].full.CompareAndSwap(0, 1) {
			return &k.images[i]
		}
	}
	return nil
}

// fill makes the save of a room, and hands it to the keeper.
func (m *image) fill(r *room) (err error) {
	p := r.play
	if m.file, err = p.file(m.bytes); err != nil {
		m.full.Store(0)
		return err
	}
	m.room = r
	r.saving.Store(true)
	*m.head = disk.SaveHead{Seed: p.seed, Tick: p.tick, Epoch: p.number, Map: p.title,
		MapSum: p.level.Sum}
	for i := range min(len(m.head.Names), r.s.o.Players) {
		m.head.Names[i] = r.seats[i].name
	}
	m.full.Store(2)
	return nil
}

// keep saves the room and adds its players' scores, each when it is due.
func (r *room) keep(now time.Duration) {
	if r.s.saves != nil && now-r.saved >= r.s.o.SaveEvery && !r.saving.Load() {
		if m := r.s.keeper.image(); m != nil {
			r.saved = now
			if err := m.fill(r); err != nil {
				r.s.say(fmt.Errorf("room %d: %w", r.number, err))
			}
		}
	}
	if r.s.scores != nil && r.play.tick%uint32(scoreTime/tickTime) == 0 {
		r.scoreAll(now)
	}
}

// scoreLog is a queue of a room's scores on their way to the file, like inbox.
type scoreLog struct {
	list    []disk.Score
	in, out atomic.Uint32
}

// add appends a score. It returns false if the queue is full.
func (l *scoreLog) add(s *disk.Score) bool {
	in := l.in.Load()
	if in-l.out.Load() == uint32(len(l.list)) {
		return false
	}
	l.list[in%uint32(len(l.list))] = *s
	l.in.Add(1)
	return true
}

func (l *scoreLog) take(list []disk.Score) []disk.Score {
	for out := l.out.Load(); out != l.in.Load(); out++ {
		list = append(list, l.list[out%uint32(len(l.list))])
		l.out.Store(out + 1)
	}
	return list
}

// scoreAll adds the score of each player whose score changed.
func (r *room) scoreAll(now time.Duration) {
	for i := range r.seats[:r.s.o.Players] {
		if r.seats[i].state != empty {
			r.score(i, now)
		}
	}
}

func (r *room) score(place int, now time.Duration) {
	if r.s.scores == nil || place >= r.s.o.Players || r.play == nil {
		return
	}
	p, s := r.play.level.Players.At(place), &r.seats[place]
	if p == nil {
		return
	}
	is := score{p.Caught, p.Deaths, p.Exits}
	// Late inputs can undo a score, and a reader would take a lower score for another game.
	if is == s.scored || is.caught < s.scored.caught || is.deaths < s.scored.deaths ||
		is.exits < s.scored.exits {
		return
	}
	if r.scores.add(&disk.Score{Seconds: r.s.began.Add(now).Unix(), Name: s.name, Map: r.play.title,
		Room: uint32(r.number), Player: uint32(place), Epoch: r.play.number, Ticks: r.play.tick, Caught: is.caught,
		Deaths: is.deaths, Exits: is.exits}) {
		s.scored = is
	}
}

// bytesOf returns the bytes of inputs, which have no padding.
func bytesOf(list []game.Input) []byte {
	if len(list) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&list[0])), len(list)*int(unsafe.Sizeof(list[0])))
}

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/disk"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
)

// Offline is the result of playing the records of a folder.
type Offline struct {
	Rooms int `json:"rooms"`
	// The hash of each room after its last record; "" for a room without a record.
	Hash    []string        `json:"hash"`
	Records []OfflineRecord `json:"records"`
}

// OfflineRecord is the result of one record.
type OfflineRecord struct {
	Room  uint32 `json:"room"`
	Epoch uint32 `json:"epoch"`
	Map   string `json:"map"`
	First uint32 `json:"first_tick"`
	Ticks int    `json:"ticks"` // in the record
	Hash  string `json:"hash"`
	Torn  int    `json:"torn"` // bytes of an incomplete tick at the end
}

// offlineOptions are the flags of the command offline.
type offlineOptions struct {
	game.Options
	plan, dir string
	json      bool
}

// offlineCommand plays a server's records, each as its room played it. It returns the exit code.
func offlineCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, code, ok := parseOffline(args, stderr)
	if !ok {
		return code
	}
	result, err := playRecords(ctx, o, stderr)
	if result != nil {
		err = errors.Join(err, printResult(stdout, o.json, result, result.tell))
	}
	if err != nil {
		fmt.Fprintln(stderr, "frogpond:", err)
		return 1
	}
	return 0
}

func parseOffline(args []string, stderr io.Writer) (o *offlineOptions, code int, ok bool) {
	o = &offlineOptions{Options: game.Options{Maps: "all", Log: os.DevNull}}
	f := newFlags("offline", "DIR", stderr)
	f.BoolVar(&o.json, "json", false, "print one JSON object and nothing else")
	f.StringVar(&o.plan, "plan", "", "the memory plan, a JSON `file`; without it, the one in "+
		"serve.json")
	f.Uint64Var(&o.Seed, "seed", 1, "the seed of the built-in maps")
	wadFlag(f, &o.WADs)
	if o.dir, code, ok = parseOne(f, args, "DIR"); !ok {
		return nil, code, false
	}
	if len(o.WADs) == 0 {
		o.WADs = doom.InstalledWADs()
	}
	return o, 0, true
}

// playRecords plays each record of the folder, by room and epoch, until one fails. With an error it
// returns the result of the records before that one, or nil if there are none.
func playRecords(ctx context.Context, o *offlineOptions, stderr io.Writer) (r *Offline, err error) {
	files, err := disk.Records(o.dir)
	if err != nil {
		return nil, err
	}
	plan, err := o.readPlan()
	if err != nil {
		return nil, err
	}
	b, err := budget.Open(plan)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	s, err := game.Open(ctx, o.Options, b)
	if err != nil {
		return nil, err
	}
	sayReplaced(stderr, s.Maps)
	crew := game.Alone(b, 0)
	r = &Offline{Records: []OfflineRecord{}, Hash: []string{}}
	for _, file := range files {
		if err := r.play(ctx, s, crew, file); err != nil {
			if len(r.Records) == 0 {
				return nil, err
			}
			return r, err
		}
	}
	return r, nil
}

// play plays the record of a file, and adds the result to o.
func (o *Offline) play(ctx context.Context, s *game.Server, crew *game.Crew, file disk.RecordFile) error {
	replay, err := disk.OpenReplay(file.Name)
	if err != nil {
		return err
	}
	if replay.Head.Room != file.Room || replay.Head.Epoch != file.Epoch {
		return fmt.Errorf("%s: it is of room %d, epoch %d", file.Name, replay.Head.Room, replay.Head.Epoch)
	}
	hash, err := playRecord(ctx, s, crew, replay)
	if err != nil {
		return fmt.Errorf("%s: %w", file.Name, err)
	}
	o.add(replay, fmt.Sprintf("%016x", uint64(hash)))
	return nil
}

// readPlan returns a server's memory plan, reduced to one level at a time. Records don't count:
// they are on the Go heap.
func (o *offlineOptions) readPlan() (plan budget.Plan, err error) {
	name := o.plan
	if name == "" {
		name = "serve.json"
		plan, err = budget.ParsePlan(defaultServePlan)
	} else {
		plan, err = budget.ReadPlan(name)
	}
	if err != nil {
		return plan, err
	}
	plan.GoHeap = 0
	found := map[string]bool{}
	for i := range plan.Regions {
		r := &plan.Regions[i]
		r.Slots = min(r.Slots, 1)
		found[r.Name] = r.Name != "level" || r.State
	}
	if !found["init"] || !found["level"] || plan.Scratch.Workers == 0 {
		return plan, fmt.Errorf("%s: needs a region init, a region level with state, and scratch", name)
	}
	return plan, nil
}

// playRecord plays a record from its start and returns the hash of the last state.
func playRecord(ctx context.Context, s *game.Server, crew *game.Crew, r *disk.Replay) (
	hash doom.Hash, err error) {
	m, err := mapNamed(s.Maps, printable(r.Head.Map[:]))
	if err != nil {
		return 0, err
	}
	region, leave, err := takeLevel(s.Budget)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, leave(context.WithoutCancel(ctx))) }()
	level, err := s.LoadInto(ctx, region, crew, m, int(r.Head.Players))
	if err != nil {
		return 0, err
	}
	if err := level.IsOf(r.Head.MapSum); err != nil {
		return 0, err
	}
	g, err := s.BeginEmpty(level, r.Head.Seed)
	if err != nil {
		return 0, err
	}
	if err := restore(ctx, level, r); err != nil {
		return 0, err
	}
	inputs := make([]game.Input, r.Head.Players)
	for i := range r.Ticks {
		if _, err := binary.Decode(r.Inputs(i), binary.LittleEndian, inputs); err != nil {
			return 0, err
		}
		if err := errors.Join(g.StepBy(crew, inputs), ctx.Err()); err != nil {
			return 0, fmt.Errorf("tick %d: %w", level.Room.Tick, err)
		}
	}
	return g.Hash(), nil
}

func mapNamed(maps []doom.Map, name string) (m doom.Map, err error) {
	for _, m := range maps {
		if m.Name == name {
			return m, nil
		}
	}
	return m, fmt.Errorf("it is of map %q, which no WAD file has", name)
}

// takeLevel returns a region to play a level in, which may be a slot, and a function that empties
// it.
func takeLevel(b *budget.Budget) (region budget.Region, leave func(context.Context) error,
	err error) {
	for _, r := range b.Report().Plan.Regions {
		if r.Name == "level" && r.Slots > 0 {
			if region, err = b.Slots("level").Acquire(); err != nil {
				return budget.Region{}, nil, err
			}
			return region, region.Release, nil
		}
	}
	region = b.Region("level")
	return region, region.Rewind, nil
}

// restore restores the state at the start of a record, if it has one.
func restore(ctx context.Context, level *game.Level, r *disk.Replay) error {
	if len(r.State) == 0 {
		return nil
	}
	number, err := level.Snapshots.Read(bytes.NewReader(r.State))
	if err == nil {
		err = level.Snapshots.Restore(ctx, number)
	}
	if at := level.Room.Tick; err == nil && at != r.Head.FirstTick {
		err = fmt.Errorf("its head says tick %d, and its state is of tick %d",
			r.Head.FirstTick, at)
	}
	return err
}

// add adds the result of a record. It expects records in the order of room and epoch.
func (o *Offline) add(r *disk.Replay, hash string) {
	room := int(r.Head.Room)
	for len(o.Hash) <= room {
		o.Hash = append(o.Hash, "")
	}
	o.Rooms, o.Hash[room] = len(o.Hash), hash
	o.Records = append(o.Records, OfflineRecord{r.Head.Room, r.Head.Epoch,
		printable(r.Head.Map[:]), r.Head.FirstTick, r.Ticks, hash, r.Torn})
}

func (o *Offline) tell(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ROOM\tEPOCH\tMAP\tFIRST TICK\tTICKS\tHASH\tTORN")
	for _, r := range o.Records {
		fmt.Fprintf(t, "%d\t%d\t%s\t%d\t%d\t%s\t%d\n", r.Room, r.Epoch, r.Map, r.First, r.Ticks,
			r.Hash, r.Torn)
	}
	t.Flush() // can't fail: it writes to memory
}

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/disk"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
)

// inputs returns the inputs of -playdemo, or an empty list without it. If a flag needs the inputs
// of each tick, the list has capacity for them.
func (o *options) inputs(l *game.Level) (in inputs, err error) {
	in = inputs{players: o.bots}
	if o.rollback != 0 || o.demo != "" || o.playDemo != "" {
		in.list = make([]game.Input, 0, o.bots*o.Ticks)
	}
	if o.playDemo == "" {
		return in, nil
	}
	file, err := os.Open(o.playDemo)
	if err != nil {
		return in, fmt.Errorf("-playdemo: %w", err)
	}
	defer file.Close()
	size := binary.Size(game.Input{})
	data, err := disk.ReadDemo(file, make([]byte, cap(in.list)*size),
		func(h *disk.DemoHead) error { return o.isDemoOf(l, h) })
	if err != nil {
		return in, fmt.Errorf("-playdemo %s: %w", o.playDemo, err)
	}
	in.list = in.list[:len(data)/size]
	_, err = binary.Decode(data, binary.LittleEndian, in.list)
	return in, err
}

// isDemoOf returns an error unless the demo is of the game that these options play on l.
func (o *options) isDemoOf(l *game.Level, h *disk.DemoHead) error {
	switch {
	case h.Players != uint32(o.bots):
		return fmt.Errorf("it is of %d players, and -bots is %d", h.Players, o.bots)
	case printable(h.Map[:]) != l.Name:
		return fmt.Errorf("it is of map %s, and not of %s", printable(h.Map[:]), l.Name)
	case h.Seed != o.Seed:
		return fmt.Errorf("it is of seed %d, and -seed is %d", h.Seed, o.Seed)
	}
	return l.IsOf(h.MapSum)
}

func (o *options) writeDemo(w io.Writer, l *game.Level, in *inputs) error {
	head := disk.DemoHead{Players: uint32(o.bots), Seed: o.Seed, MapSum: l.Sum,
		Ticks: uint64(in.ticks())}
	copy(head.Map[:], l.Name)
	data, err := binary.Append(nil, binary.LittleEndian, in.list)
	if err != nil {
		return err
	}
	return disk.WriteDemo(w, &head, data)
}

// begin returns the first tick to play. With -load it restores the state of the file. Package save
// checks that the file is whole and of this level, and begin checks the tick.
func (o *options) begin(ctx context.Context, g *game.Game) (tick int, err error) {
	if o.load == "" {
		return 0, nil
	}
	file, err := os.Open(o.load)
	if err != nil {
		return 0, fmt.Errorf("-load: %w", err)
	}
	defer file.Close()
	number, err := g.Level.Snapshots.Read(bufio.NewReader(file))
	if err == nil {
		err = g.Level.Snapshots.Restore(ctx, number)
	}
	if at := uint64(g.Level.Room.Tick); err == nil && at != number {
		err = fmt.Errorf("its head says tick %d, and its state is of tick %d", number, at)
	}
	if err == nil && number > uint64(o.Ticks) {
		err = fmt.Errorf("it is of tick %d, and -ticks is %d", number, o.Ticks)
	}
	if err != nil {
		return 0, fmt.Errorf("-load %s: %w", o.load, err)
	}
	return int(number), nil
}

// end takes a snapshot of the last state, writes the files of -demo and -save, and returns the
// snapshot's hash.
func (o *options) end(g *game.Game, in *inputs, ticks int) (hash uint64, err error) {
	ring := g.Level.Snapshots
	if err := ring.Take(uint64(ticks)); err != nil {
		return 0, err
	}
	if hash, err = ring.Hash(uint64(ticks)); err != nil {
		return 0, err
	}
	if o.demo != "" {
		if err := write("-demo", o.demo, func(w io.Writer) error {
			return o.writeDemo(w, g.Level, in)
		}); err != nil {
			return 0, err
		}
	}
	if o.save == "" {
		return hash, nil
	}
	if err := disk.Replace(o.save, func(w io.Writer) error { return ring.Write(w, uint64(ticks)) }); err != nil {
		return 0, fmt.Errorf("-save %s: %w", o.save, err)
	}
	return hash, nil
}

func write(flag, name string, fn func(io.Writer) error) error {
	file, err := os.Create(name)
	if err == nil {
		err = fn(file)
		if failed := file.Close(); err == nil {
			err = failed
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", flag, name, err)
	}
	return nil
}

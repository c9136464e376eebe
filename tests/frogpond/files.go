package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
)

// inputs are those of -playdemo, as far as they are played; with room for those of each tick, where
// somebody wants them.
func (o *options) inputs() (in inputs, err error) {
	in = inputs{players: o.bots}
	if o.rollback != 0 || o.demo != "" || o.playDemo != "" {
		in.list = make([]game.Input, 0, o.bots*o.Ticks)
	}
	if o.playDemo == "" {
		return in, nil
	}
	data, err := os.ReadFile(o.playDemo)
	if err != nil {
		return in, fmt.Errorf("-playdemo: %w", err)
	}
	size := binary.Size(game.Input{})
	if len(data)%(size*o.bots) != 0 {
		return in, fmt.Errorf("-playdemo %s: %d bytes are no inputs of %d players, %d bytes each",
			o.playDemo, len(data), o.bots, size)
	}
	in.list = in.list[:min(len(data)/size, cap(in.list))]
	_, err = binary.Decode(data, binary.LittleEndian, in.list)
	return in, err
}

// begin is the tick to begin with: that of -load, whose state is in place then. The library says
// that the file is whole and of this level; what its numbers mean is looked at here.
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
		err = fmt.Errorf("it is said to be of tick %d, and its state is of tick %d", number, at)
	}
	if err == nil && number > uint64(o.Ticks) {
		err = fmt.Errorf("it is of tick %d, and -ticks is %d", number, o.Ticks)
	}
	if err != nil {
		return 0, fmt.Errorf("-load %s: %w", o.load, err)
	}
	return int(number), nil
}

// end takes the last state, and writes what is to be written.
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
			return binary.Write(w, binary.LittleEndian, in.list)
		}); err != nil {
			return 0, err
		}
	}
	if o.save == "" {
		return hash, nil
	}
	return hash, write("-save", o.save, func(w io.Writer) error {
		return ring.Write(w, uint64(ticks))
	})
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

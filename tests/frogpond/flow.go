package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope/flow/source"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
)

// export prints the graph of a map, or the vocabulary of such graphs, in the form that the tool
// upfront reads.
func export(ctx context.Context, o *options, plan budget.Plan, out, stderr io.Writer) (
	err error) {
	if o.vocabulary {
		_, err := out.Write(source.WriteVocabulary(game.Vocabulary()))
		return err
	}
	o.Maps = o.flow
	b, err := budget.Open(plan)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	s, err := game.Boot(ctx, o.Options, b)
	if err != nil {
		return err
	}
	defer s.Stop()
	sayReplaced(stderr, s.Maps)
	if len(s.Maps) != 1 {
		return fmt.Errorf("-flow %s: one map at a time", o.flow)
	}
	level, err := s.Load(ctx, s.Maps[0], 0)
	if err != nil {
		return err
	}
	_, err = out.Write(source.Write(level.World.Script()))
	return err
}

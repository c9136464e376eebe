// Package tiles is the program tiles, written by upfront's docs only.
package tiles

import (
	"context"
	_ "embed"
	"errors"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
	"github.com/upfront-mem/upfront/tests/strangers/work"
)

//go:embed plan.json
var planFile []byte

// server has the cache, and the memory to draw a tile.
type server struct {
	cache  *cache.Bytes
	raster []byte
	tile   []byte
}

// Play plays the program tiles.
func Play(m *work.Meter) (sum uint64, err error) {
	plan, err := budget.ParsePlan(planFile)
	if err != nil {
		return 0, err
	}
	b, err := budget.Open(plan)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	loaded, err := budget.Load(context.Background(), b.Region("tiles"), func(s scope.Scope) (*server, error) {
		return &server{
			// an index for a few entries more than there are on average
			cache.NewBytes(s, work.CacheSize, cache.Options{Entry: work.MeanTile * 9 / 10}),
			s.Bytes(work.RasterSize),
			s.Bytes(work.TileSize)[:0],
		}, nil
	})
	if err != nil {
		return 0, err
	}
	m.Ready()
	return loaded.Get().play(m)
}

func (s *server) play(m *work.Meter) (uint64, error) {
	var (
		stream work.Tiles
		sum    work.Sum
	)
	for stream.Tick() {
		m.Start()
		for r, ok := stream.Next(); ok; r, ok = stream.Next() {
			if r.Edit {
				s.cache.Delete(r.Path)
			} else if !s.cache.View(r.Path, func(tile []byte) { work.Serve(&sum, tile) }) {
				m.Miss()
				stream.Draw(r, s.raster)
				tile := work.AppendTile(s.tile, s.raster)
				work.Serve(&sum, tile)
				if err := s.cache.Set(r.Path, tile); err != nil {
					return 0, err
				}
			}
		}
		m.Stop()
	}
	return uint64(sum), nil
}

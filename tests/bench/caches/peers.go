package main

import (
	"context"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/VictoriaMetrics/fastcache"
	"github.com/Yiling-J/theine-go"
	"github.com/allegro/bigcache/v3"
	"github.com/coocood/freecache"
	"github.com/dgraph-io/ristretto/v2"
	"github.com/maypok86/otter/v2"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
)

const (
	library = "upfront"
	none    = "no cache"
)

// contestant is a cache. get appends the value to dst; set keeps copies of its arguments.
type contestant interface {
	get(dst, key []byte) ([]byte, bool)
	set(key, value []byte)
}

// peer makes a cache of a limit for values of a size. The limit of one that bounds bytes is of its
// bytes, though perhaps without the index. The limit of another is of keys and values.
type peer struct {
	name    string
	bounded bool
	make    func(limit, size int) (contestant, error)
}

// shards is the number of shards of each cache with a choice. bigcache and freecache have more by
// default, for more processors.
const shards = 16

var peers = []peer{
	{library, true, func(limit, size int) (contestant, error) { return newUpfront(limit, size) }},
	{"fastcache", true, func(limit, size int) (contestant, error) { return fast{fastcache.New(limit)}, nil }},
	{"freecache", true, func(limit, size int) (contestant, error) { return free{freecache.NewCache(limit)}, nil }},
	{"bigcache", true, func(limit, size int) (contestant, error) { return newBig(limit, size) }},
	{"ristretto", false, func(limit, size int) (contestant, error) { return newRistretto(limit, size) }},
	{"otter", false, func(limit, size int) (contestant, error) { return newOtter(limit) }},
	{"theine", false, func(limit, size int) (contestant, error) { return newTheine(limit) }},
	{none, false, func(limit, size int) (contestant, error) { return empty{}, nil }},
}

// names returns the names of all caches.
func names() (list []string) {
	for _, p := range peers[:len(peers)-1] {
		list = append(list, p.name)
	}
	return list
}

func find(name string) (peer, error) {
	i := slices.IndexFunc(peers, func(p peer) bool { return p.name == name })
	if i < 0 {
		return peer{}, fmt.Errorf("no cache %q", name)
	}
	return peers[i], nil
}

func bounded(name string) bool {
	p, err := find(name)
	return err == nil && p.bounded
}

type upfront struct{ *cache.Bytes }

// newUpfront makes a cache of limit bytes in a region of a budget.
func newUpfront(limit, size int) (contestant, error) {
	b, err := budget.Open(budget.Plan{Name: "caches",
		Regions: []budget.RegionPlan{{Name: "cache", Size: uint64(limit) + 64*budget.KiB}}})
	if err != nil {
		return nil, err
	}
	c, err := budget.Load(context.Background(), b.Region("cache"), func(s scope.Scope) (*cache.Bytes, error) {
		return cache.NewBytes(s, limit, cache.Options{Shards: shards, Entry: keySize + size, Seed: 1}), nil
	})
	return upfront{c.Get()}, err
}

func (c upfront) get(dst, key []byte) ([]byte, bool) { return c.Get(dst, key) }

func (c upfront) set(key, value []byte) { must(c.Set(key, value)) }

type fast struct{ *fastcache.Cache }

func (c fast) get(dst, key []byte) ([]byte, bool) { return c.HasGet(dst, key) }

func (c fast) set(key, value []byte) { c.Set(key, value) }

type free struct{ *freecache.Cache }

func (c free) get(dst, key []byte) ([]byte, bool) {
	value, err := c.GetWithBuf(key, dst[:cap(dst)])
	return value, err == nil
}

func (c free) set(key, value []byte) { must(c.Set(key, value, 0)) }

type big struct{ *bigcache.BigCache }

// newBig makes a bigcache whose limit, in MiB for each of the shards, is rounded down.
func newBig(limit, size int) (contestant, error) {
	c, err := bigcache.New(context.Background(), bigcache.Config{
		Shards: shards, LifeWindow: 24 * time.Hour, MaxEntriesInWindow: limit / (keySize + size),
		MaxEntrySize:     keySize + size,
		HardMaxCacheSize: max(1, limit>>20), Logger: log.Default(),
	})
	return big{c}, err
}

func (c big) get(dst, key []byte) ([]byte, bool) {
	value, err := c.Get(string(key))
	return append(dst, value...), err == nil
}

func (c big) set(key, value []byte) { must(c.Set(string(key), value)) }

type ristrettoCache struct {
	*ristretto.Cache[string, []byte]
}

// newRistretto follows ristretto's documentation: ten counters for each entry.
func newRistretto(limit, size int) (contestant, error) {
	c, err := ristretto.NewCache(&ristretto.Config[string, []byte]{
		NumCounters: 10 * int64(limit/(keySize+size)), MaxCost: int64(limit), BufferItems: 64,
		IgnoreInternalCost: true})
	return ristrettoCache{c}, err
}

func (c ristrettoCache) get(dst, key []byte) ([]byte, bool) {
	value, ok := c.Get(string(key))
	return append(dst, value...), ok
}

func (c ristrettoCache) set(key, value []byte) {
	c.Set(string(key), slices.Clone(value), int64(len(key)+len(value)))
}

type otterCache struct {
	*otter.Cache[[keySize]byte, []byte]
}

func newOtter(limit int) (contestant, error) {
	c, err := otter.New(&otter.Options[[keySize]byte, []byte]{MaximumWeight: uint64(limit),
		Weigher: func(key [keySize]byte, value []byte) uint32 { return uint32(len(key) + len(value)) }})
	return otterCache{c}, err
}

func (c otterCache) get(dst, key []byte) ([]byte, bool) {
	value, ok := c.GetIfPresent([keySize]byte(key))
	return append(dst, value...), ok
}

func (c otterCache) set(key, value []byte) { c.Set([keySize]byte(key), slices.Clone(value)) }

type theineCache struct {
	*theine.Cache[[keySize]byte, []byte]
}

func newTheine(limit int) (contestant, error) {
	c, err := theine.NewBuilder[[keySize]byte, []byte](int64(limit)).Build()
	return theineCache{c}, err
}

func (c theineCache) get(dst, key []byte) ([]byte, bool) {
	value, ok := c.Get([keySize]byte(key))
	return append(dst, value...), ok
}

func (c theineCache) set(key, value []byte) {
	c.Set([keySize]byte(key), slices.Clone(value), int64(len(key)+len(value)))
}

// empty is the same program without a cache.
type empty struct{}

func (empty) get(dst, key []byte) ([]byte, bool) { return dst, false }

func (empty) set(key, value []byte) {}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

package main

import (
	"cmp"
	"slices"
)

// occupation is the load of a server.
type occupation int

const (
	few   occupation = iota // 4 rooms
	some                    // 16
	full                    // 64
	worst                   // 64, each with the largest map
	occupations
)

const roomsMost = 64

// moment is the load of each server of a fleet.
type moment struct {
	name string
	of   func(server int) occupation
}

func day(server int) occupation { return occupation(server % 3) }

func every(n int, then occupation) func(int) occupation {
	return func(server int) occupation {
		if server%n == 0 {
			return then
		}
		return day(server)
	}
}

var moments = []moment{{"a day", day}, {"evening", every(1, full)}, {"10 % worst", every(10, worst)},
	{"all worst", every(1, worst)}}

// offer is a way to set a server's request and limits.
type offer struct {
	name           string
	request, limit uint64
	goLimit        uint64
	uses           [occupations]usage
}

// hit counts the servers that end.
type hit struct{ evicted, limited int }

// pressure returns which servers end on a node. The kernel ends each server that goes beyond its
// own limit. While the rest use more than allocatable, the kubelet evicts: first servers above
// their request, the furthest above first (all have the same priority). This follows the rule of
// pkg/kubelet/eviction, rankMemoryPressure, and of the documentation, "Node-pressure Eviction",
// without its code.
func (o offer) pressure(allocatable uint64, servers []occupation) (h hit) {
	var alive []usage
	total := uint64(0)
	for _, s := range servers {
		if u := o.uses[s]; u.peak > o.limit {
			h.limited++
		} else {
			alive = append(alive, u)
			total += u.mean
		}
	}
	// positive: evicted first
	above := func(u usage) int64 { return int64(u.mean) - int64(o.request) }
	slices.SortFunc(alive, func(a, b usage) int { return cmp.Compare(above(b), above(a)) })
	for _, u := range alive {
		if total <= allocatable {
			break
		}
		total -= u.mean
		h.evicted++
	}
	return h
}

type outcome struct {
	nodes, most int // most: servers on a node
	unplaced    int
	idle        uint64 // bytes of the used nodes that servers leave unused on an ordinary day
	hits        []hit  // by moment
}

func (o offer) outcome(s shape, p packing) (out outcome) {
	used := p.used()
	out.nodes = len(used)
	out.hits = make([]hit, len(moments))
	placed, uses := 0, uint64(0)
	for _, servers := range used {
		placed += len(servers)
		out.most = max(out.most, len(servers))
		for i, m := range moments {
			var busy []occupation
			for _, server := range servers {
				busy = append(busy, m.of(server))
			}
			h := o.pressure(uint64(s.memory), busy)
			out.hits[i].evicted += h.evicted
			out.hits[i].limited += h.limited
		}
		for _, server := range servers {
			uses += o.uses[day(server)].mean
		}
	}
	out.unplaced = len(p.nodes) - placed
	out.idle = uint64(len(used))*uint64(s.memory) - uses
	return out
}

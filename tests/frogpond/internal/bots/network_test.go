package bots

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// fly sends packets, a tick apart, and returns their numbers and delays in the order of arrival.
func fly(network Network, seed uint64, count int) (order []int, late []time.Duration) {
	w := newWay(network, seed, 0)
	for i := range count + 1000 { // long enough for the last ones
		now := time.Duration(i) * tickTime
		for p, at := w.arrive(now); p != nil; p, at = w.arrive(now) {
			n := int(binary.LittleEndian.Uint16(p))
			order, late = append(order, n), append(late, at-time.Duration(n)*tickTime)
		}
		if i < count {
			w.send(binary.LittleEndian.AppendUint16(nil, uint16(i)), now)
		}
	}
	return order, late
}

// count returns how many packets come after a packet that was sent later, and how many come twice.
func count(order []int) (overtaken, twice int) {
	seen := map[int]bool{}
	for i, n := range order {
		if seen[n] {
			twice++
		} else if i > 0 && n < order[i-1] {
			overtaken++
		}
		seen[n] = true
	}
	return overtaken, twice
}

func TestNetwork(t *testing.T) {
	const packets = 10_000
	for _, c := range []struct {
		name                   string
		network                Network
		lost, twice, overtaken int // of 10,000
		tolerance              float64
	}{
		{"perfect", Network{}, 0, 0, 0, 0},
		{"loss", Network{Loss: 2}, 200, 0, 0, 60},
		{"all lost", Network{Loss: 100}, packets, 0, 0, 0},
		{"duplicates", Network{Duplicate: 5}, 0, 500, 0, 90},
		{"reordered", Network{Reorder: 1}, 0, 0, 100, 40},
		{"little jitter", Network{Jitter: tickTime}, 0, 0, 0, 0},
	} {
		order, late := fly(c.network, 1, packets)
		overtaken, twice := count(order)
		assert.InDelta(t, c.lost, packets-(len(order)-twice), c.tolerance, c.name)
		assert.InDelta(t, c.twice, twice, c.tolerance, c.name)
		assert.InDelta(t, c.overtaken, overtaken, c.tolerance, c.name)
		for _, l := range late {
			assert.LessOrEqual(t, l, c.network.Jitter+heldBack, c.name)
			assert.GreaterOrEqual(t, l, time.Duration(0), c.name)
		}
	}
	order, late := fly(Network{Jitter: 4 * tickTime}, 1, packets)
	overtaken, _ := count(order)
	assert.Greater(t, overtaken, 1000)
	sum := time.Duration(0)
	for _, l := range late {
		sum += l
	}
	assert.InDelta(t, float64(2*tickTime), float64(sum)/packets, float64(tickTime)/10)
}

// The same seed gives the same network, and another seed another.
func TestNetworkIsItsSeed(t *testing.T) {
	network := Network{Loss: 10, Duplicate: 10, Reorder: 10, Jitter: 3 * tickTime}
	order, late := fly(network, 1, 500)
	again, lateAgain := fly(network, 1, 500)
	assert.Equal(t, order, again)
	assert.Equal(t, late, lateAgain)
	other, _ := fly(network, 2, 500)
	assert.NotEqual(t, order, other)
}

func TestNetworkAllocatesNothing(t *testing.T) {
	w := newWay(Network{Jitter: 4 * tickTime, Duplicate: 50}, 1, 0)
	packet, now := make([]byte, 1200), time.Duration(0)
	step := func() {
		w.send(packet, now)
		for p, _ := w.arrive(now); p != nil; p, _ = w.arrive(now) {
		}
		now += tickTime
	}
	for range 100 {
		step()
	}
	assert.Zero(t, testing.AllocsPerRun(1000, step))
}

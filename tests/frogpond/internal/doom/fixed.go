package doom

// The state is made of integers alone, so that its hash is the same on every
// machine. Places are 16.16 fixed point: the upper half is the map's own unit.
const UnitBits = 16

// Point is a place or a step on the map, in 16.16.
type Point struct{ X, Y int32 }

// compass holds sixteen directions, east first, counter-clockwise; each is one
// unit long.
var compass = [16]Point{
	{65536, 0}, {60547, 25080}, {46341, 46341}, {25080, 60547},
	{0, 65536}, {-25080, 60547}, {-46341, 46341}, {-60547, 25080},
	{-65536, 0}, {-60547, -25080}, {-46341, -46341}, {-25080, -60547},
	{0, -65536}, {25080, -60547}, {46341, -46341}, {60547, -25080},
}

// Step is the point that lies length units from p in a direction; at the edge
// of the number range it stays.
func (p Point) Step(direction uint32, length int32) Point {
	d := compass[direction&15]
	return Point{Clamp(int64(p.X) + int64(d.X)*int64(length)),
		Clamp(int64(p.Y) + int64(d.Y)*int64(length))}
}

// Clamp keeps a number within the range of 32 bits.
func Clamp(v int64) int32 { return int32(min(max(v, -1<<31), 1<<31-1)) }

// Near says whether two points are at most distance units apart.
func (p Point) Near(q Point, distance int64) bool {
	dx, dy := (int64(p.X)-int64(q.X))>>8, (int64(p.Y)-int64(q.Y))>>8 // 24.8, so that squares fit
	distance <<= 8
	return dx*dx+dy*dy <= distance*distance
}

// Toward is the compass direction that leads nearest from p to q.
func (p Point) Toward(q Point) uint32 {
	dx, dy := (int64(q.X)-int64(p.X))>>8, (int64(q.Y)-int64(p.Y))>>8
	best, most := uint32(0), int64(-1<<62)
	for i, d := range compass {
		if dot := dx*int64(d.X) + dy*int64(d.Y); dot > most {
			best, most = uint32(i), dot
		}
	}
	return best
}

// Random is a draw without state (splitmix64 over its arguments), so that
// workers may draw in any order and still agree.
func Random(seed uint64, tick, who uint32) uint64 {
	x := seed + (uint64(tick)<<32|uint64(who))*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Hash is FNV-1a over the bytes of 64-bit numbers.
type Hash uint64

// HashStart is the hash of nothing.
const HashStart Hash = 0xcbf29ce484222325

// Add adds numbers.
func (h *Hash) Add(values ...uint64) {
	x := *h
	for _, v := range values {
		for range 8 {
			x = (x ^ Hash(v&0xff)) * 0x100000001b3
			v >>= 8
		}
	}
	*h = x
}

// AddPoint adds a place, as one number.
func (h *Hash) AddPoint(p Point) { h.Add(uint64(uint32(p.X))<<32 | uint64(uint32(p.Y))) }

// AddBool adds a flag.
func (h *Hash) AddBool(flag bool) {
	if flag {
		h.Add(1)
	} else {
		h.Add(0)
	}
}

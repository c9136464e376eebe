package doom

// UnitBits is the number of fraction bits of a place. Places are 16.16 fixed point; the upper half
// is in the map's units. The state has only integers, so that its hash is the same on every
// machine.
const UnitBits = 16

// Point is a place or a step on the map, in 16.16.
type Point struct{ X, Y int32 }

// compass has sixteen directions, each one unit long, counter-clockwise from east.
var compass = [16]Point{
	{65536, 0}, {60547, 25080}, {46341, 46341}, {25080, 60547},
	{0, 65536}, {-25080, 60547}, {-46341, 46341}, {-60547, 25080},
	{-65536, 0}, {-60547, -25080}, {-46341, -46341}, {-25080, -60547},
	{0, -65536}, {25080, -60547}, {46341, -46341}, {60547, -25080},
}

// Step returns the point length units from p in a direction, clamped to the range of 32 bits.
func (p Point) Step(direction uint32, length int32) Point {
	d := compass[direction&15]
	return Point{Clamp(int64(p.X) + int64(d.X)*int64(length)),
		Clamp(int64(p.Y) + int64(d.Y)*int64(length))}
}

// Clamp returns v, limited to the range of 32 bits.
func Clamp(v int64) int32 { return int32(min(max(v, -1<<31), 1<<31-1)) }

// Near reports whether two points are at most distance units apart.
func (p Point) Near(q Point, distance int64) bool {
	dx, dy := (int64(p.X)-int64(q.X))>>8, (int64(p.Y)-int64(q.Y))>>8 // 24.8, so that squares fit
	distance <<= 8
	return dx*dx+dy*dy <= distance*distance
}

// Toward returns the one of 16 directions that leads most nearly from p to q.
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

// Random returns a random number that depends only on its arguments (by splitmix64). So workers may
// draw in any order and get the same numbers.
func Random(seed uint64, tick, who uint32) uint64 {
	x := seed + (uint64(tick)<<32|uint64(who))*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Hash is FNV-1a over the bytes of 64-bit numbers.
type Hash uint64

// HashStart is the hash of no bytes.
const HashStart Hash = 0xcbf29ce484222325

// Add adds numbers, as 8 bytes each.
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

// AddBytes adds bytes.
func (h *Hash) AddBytes(bytes []byte) {
	x := *h
	for _, b := range bytes {
		x = (x ^ Hash(b)) * 0x100000001b3
	}
	*h = x
}

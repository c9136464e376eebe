package work

import "encoding/binary"

// The limits of the program world.
const (
	WorldTicks      = 1600
	TerrainSize     = 16384 // bytes of a chunk's terrain
	Near            = 6     // a chunk is loaded at this distance from the player's chunk
	Far             = 7     // and unloaded beyond this distance
	ChunksAtOnce    = (2*Far + 1) * (2*Far + 1)
	EntitiesInChunk = 24  // at most
	EntityDataSize  = 256 // bytes of an entity's data, at most
)

// Place is a chunk's place in the world.
type Place struct{ X, Z int32 }

func (p Place) number() uint64 { return uint64(uint32(p.X))<<32 | uint64(uint32(p.Z)) }

// Within reports whether p and q are at most distance chunks from each other, on each axis.
func (p Place) Within(q Place, distance int32) bool {
	return max(p.X-q.X, q.X-p.X, p.Z-q.Z, q.Z-p.Z) <= distance
}

// Walk is the player's way through the world.
type Walk struct {
	tick int
	x, z int32
}

// Next returns the place of the player's chunk during the next tick, and false after the last tick.
func (w *Walk) Next() (Place, bool) {
	to := Mix(uint64(w.tick / 48)) // keeps its direction for 48 ticks
	w.x += int32(to%64) - 28
	w.z += int32(to>>32%64) - 34
	w.tick++
	return Place{w.x >> 7, w.z >> 7}, w.tick <= WorldTicks
}

// Terrain fills a chunk's terrain, TerrainSize bytes.
func Terrain(terrain []byte, p Place) {
	v := Mix(p.number())
	for i := 0; i < len(terrain); i += 8 {
		v = v*0x5851f42d4c957f2d + 1
		binary.LittleEndian.PutUint64(terrain[i:], v>>1)
	}
}

// FirstHeat returns the heat of a chunk that has just been loaded.
func FirstHeat(p Place) uint32 { return uint32(Mix(p.number()+1)) >> 20 }

// Warm returns the heat of a chunk after a tick, from the heat of the chunk and its neighbours
// before the tick. A neighbour that isn't loaded has the heat 0.
func Warm(heat, north, east, south, west uint32) uint32 {
	return (4*heat + north + east + south + west + 3<<12) >> 3 & 0xffff
}

// Burn changes the terrain in a tick, by the chunk's heat after the tick.
func Burn(terrain []byte, heat uint32) {
	terrain[heat*2654435761>>18]++ // one of 16384
}

// Population returns the number of entities of a chunk that has just been loaded.
func Population(p Place) int { return 4 + int(Mix(p.number()+2)%16) }

// Spawns reports whether the chunk has a further entity after a tick, if there is room for it.
func Spawns(p Place, tick int) bool { return Mix(p.number()+uint64(tick)*977)%8 == 0 }

// Entity is an entity without its data.
type Entity struct {
	ID     uint64
	Energy uint32
	At     uint16 // an index into the terrain
	Left   uint16 // ticks that it still lives
}

// Born returns a chunk's entity with a serial number. The numbers count from 0 since the chunk was
// loaded.
func Born(p Place, serial uint32) Entity {
	id := Mix(p.number()*31 + uint64(serial))
	return Entity{ID: id, At: uint16(id % TerrainSize), Left: 20 + uint16(id>>32%200)}
}

// Step moves the entity for a tick. The entity dies after the tick in which Left becomes 0.
func (e *Entity) Step(terrain, data []byte) {
	e.At = uint16(uint64(e.At)+e.ID>>60+1) % TerrainSize
	e.Energy += uint32(terrain[e.At]) + uint32(data[int(e.Left)%len(data)])
	e.Left--
}

// Resizes reports whether the entity's data gets a new size after this step.
func (e *Entity) Resizes() bool { return (uint64(e.Left)+e.ID)%16 == 0 }

// DataSize returns the size of the entity's data: 8 to EntityDataSize bytes.
func (e *Entity) DataSize() int { return 8 + int(Mix(e.ID+uint64(e.Left)/16)%(EntityDataSize-7)) }

// FillData fills the entity's data from an index on.
func (e *Entity) FillData(data []byte, from int) {
	for i := from; i < len(data); i++ {
		data[i] = byte(e.ID>>(i&31)) + byte(i)
	}
}

// Digest returns a number for the entity with its data.
func (e *Entity) Digest(data []byte) uint64 {
	var s Sum
	s.Add(e.ID)
	s.Add(uint64(e.Energy)<<32 | uint64(e.At)<<16 | uint64(e.Left))
	s.Bytes(data)
	return uint64(s)
}

// ChunkDigest returns a number for a chunk: entities is the sum of its entities' digests.
func ChunkDigest(p Place, heat, serial uint32, terrain []byte, entities uint64) uint64 {
	var s Sum
	s.Add(p.number())
	s.Add(uint64(heat)<<32 | uint64(serial))
	s.Bytes(terrain)
	s.Add(entities)
	return uint64(s)
}

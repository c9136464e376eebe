package save

import (
	"fmt"
	"hash/crc32"
)

// PageSize is how many bytes of a snapshot have a hash of their own.
const PageSize = 4096

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Hash is the hash of a snapshot: equal wherever the states are. It is for who wants to know
// whether two machines agree, not for who fears a forger. Cost: that of CRC32C, once a snapshot; no
// Go allocation.
func (r *Ring) Hash(number uint64) (uint64, error) {
	s, err := r.state("Hash", number)
	if err != nil {
		return 0, err
	}
	return s.sum(), nil
}

// sum is the hash of what is held, worked out once.
func (s *slot) sum() uint64 {
	if !s.hashed {
		s.hash, s.hashed = hashOf(s.image), true
	}
	return s.hash
}

// PageHashes appends the hash of each page of a snapshot, CRC32C of [PageSize] bytes, the last of
// what is left. Two machines whose hashes differ send each other these, four bytes for a page,
// before a whole snapshot: one page that differs is a field that went wrong just now, all of them
// are another game. Which field it is says [Ring.Diff], or [DiffFiles] of both machines' files. An
// error leaves list as it was. Cost: that of CRC32C, each time; no Go allocation when list has
// room.
func (r *Ring) PageHashes(list []uint32, number uint64) ([]uint32, error) {
	s, err := r.state("PageHashes", number)
	if err != nil {
		return list, err
	}
	for at := 0; at < len(s.image); at += PageSize {
		list = append(list, pageSum(s.image, at))
	}
	return list, nil
}

// hashOf is over the hashes of pages: FNV-1a, a page a step.
func hashOf(image []byte) uint64 {
	hash := uint64(14695981039346656037)
	for at := 0; at < len(image); at += PageSize {
		hash = (hash ^ uint64(pageSum(image, at))) * 1099511628211
	}
	return hash
}

func pageSum(image []byte, at int) uint32 { return sumOf(image[at:min(at+PageSize, len(image))]) }

// sumOf is the CRC32C of bytes.
func sumOf(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// state is get, of states of state regions: the image is the same wherever the states are.
func (r *Ring) state(what string, number uint64) (*slot, error) {
	if err := r.states(what); err != nil {
		return nil, err
	}
	s, err := r.get(number)
	if err == nil && !s.clean {
		for i := range r.parts {
			r.parts[i].clean(s.image, s.index)
		}
		s.clean = true
	}
	return s, err
}

// states refuses what asks for state regions.
func (r *Ring) states(what string) error {
	for i := range r.parts {
		if s := r.parts[i].saved; !s.IsState() {
			return fmt.Errorf("save: %s of region %s of budget %q, whose bytes may differ from machine to "+
				"machine: set its key state to true (RegionPlan.State)", what, s.Name(), s.Budget())
		}
	}
	return nil
}

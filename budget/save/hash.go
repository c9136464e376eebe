package save

import "hash/crc32"

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
// what is left: where two machines differ, they need to compare these only. Cost: as Hash.
func (r *Ring) PageHashes(list []uint32, number uint64) ([]uint32, error) {
	s, err := r.state("PageHashes", number)
	if err != nil {
		return list, err
	}
	for page := range pages(s.image) {
		list = append(list, crc32.Update(0, castagnoli, page))
	}
	return list, nil
}

// hashOf is over the hashes of pages: FNV-1a, a page a step.
func hashOf(image []byte) uint64 {
	hash := uint64(14695981039346656037)
	for page := range pages(image) {
		hash = (hash ^ uint64(crc32.Update(0, castagnoli, page))) * 1099511628211
	}
	return hash
}

func pages(image []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for at := 0; at < len(image); at += PageSize {
			if !yield(image[at:min(at+PageSize, len(image))]) {
				return
			}
		}
	}
}

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
		if err := r.parts[i].asState(what); err != nil {
			return err
		}
	}
	return nil
}

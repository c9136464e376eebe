package save

import (
	"fmt"
	"hash/crc32"
)

// PageSize is the size of a page of [Ring.PageHashes], in bytes.
const PageSize = 4096

// zeros stand for free bytes; zeroSum is the hash of a page of them.
var (
	zeros   [PageSize]byte
	zeroSum = sumOf(zeros[:])
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Hash returns the hash of a snapshot. On all machines, equal states have equal hashes. Hash fails
// if the ring doesn't hold the snapshot, or if a region isn't a state region. The hash doesn't
// protect against forgery. The first call for a snapshot costs about a CRC32C of all its bytes.
// Hash makes no Go allocation.
func (r *Ring) Hash(number uint64) (uint64, error) {
	s, err := r.state("Hash", number)
	if err != nil {
		return 0, err
	}
	return s.sum(), nil
}

func (s *slot) sum() uint64 {
	if !s.hashed {
		s.hash, s.hashed = hashOf(s.bytes()), true
	}
	return s.hash
}

// PageHashes appends to list the hash of each page of a snapshot: the CRC32C of [PageSize] bytes,
// or of the remaining bytes for the last page. If the hashes of two machines differ, the machines
// can exchange their page hashes first, four bytes a page. If few pages differ, a field probably
// went wrong recently. If nearly all pages differ, the games probably are different. [DiffFiles]
// with both machines' files can name the field. On an error PageHashes returns list unchanged. Each
// call costs about a CRC32C of all bytes of the snapshot. It makes no Go allocation if list has
// room.
func (r *Ring) PageHashes(list []uint32, number uint64) ([]uint32, error) {
	s, err := r.state("PageHashes", number)
	if err != nil {
		return list, err
	}
	w := r.segmentsOf(s.bytes())
	for at := 0; at < r.flatSize; {
		sum, end := uint32(0), min(at+PageSize, r.flatSize)
		if w.before(at) >= PageSize && end == at+PageSize {
			sum, at = zeroSum, end
		}
		for at < end {
			bytes := zeros[:min(end-at, w.before(at))] // free bytes
			if len(bytes) == 0 {
				bytes = w.bytes[:min(end-at, len(w.bytes))]
				w.skip(len(bytes))
			}
			sum = crc32.Update(sum, castagnoli, bytes)
			at += len(bytes)
		}
		list = append(list, sum)
	}
	return list, nil
}

// hashOf returns the hash of an image: FNV-1a over the CRC32Cs of its pages. Say an image of 10,000
// bytes has three pages with the sums a, b and c. With p the prime of FNV, its hash is
// (((basis^a)*p ^ b)*p ^ c)*p. FNV-1a over single bytes would be slow, and one CRC32C has only 32
// bits.
func hashOf(image []byte) uint64 {
	hash := uint64(14695981039346656037)
	for at := 0; at < len(image); at += PageSize {
		hash = (hash ^ uint64(pageSum(image, at))) * 1099511628211
	}
	return hash
}

func pageSum(image []byte, at int) uint32 { return sumOf(image[at:min(at+PageSize, len(image))]) }

func sumOf(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// state is get for calls that need state regions. It clears the bytes that differ between machines
// with equal states.
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

func (r *Ring) states(what string) error {
	for i := range r.parts {
		if s := r.parts[i].saved; !s.IsState {
			return fmt.Errorf("save: %s of region %s of budget %q, whose bytes may differ from machine to "+
				"machine: set its key state to true (RegionPlan.State)", what, s.Name, s.Budget)
		}
	}
	return nil
}

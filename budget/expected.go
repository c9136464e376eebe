package budget

import "math/bits"

// Expected is the memory that a part of a plan, or a label in it, is expected to use over time.
// Pictures draw the expected use next to a timeline, and `upfront check` compares it with the
// measured use. Apart from the plan's checks it has no effect on a budget.
type Expected struct {
	// Part is the name of a region, "frame", "scratch" or "c_heap". Each slot of a region may use
	// the sizes below.
	Part  string `json:"part"`
	Label string `json:"label,omitempty"` // a [scope.Label] in the part; "": all of the part
	// Boot is the most bytes in use before the first load of the part, Load the most in a load,
	// temporaries included, and Play the most between loads. For a part that is never loaded, such
	// as the frame, the loads of all regions count. A 0 allows any use.
	Boot uint64 `json:"boot,omitempty"`
	Load uint64 `json:"load,omitempty"`
	Play uint64 `json:"play,omitempty"`
	// Tolerance is the share of each size by which the use may differ. With 0 the use must be equal
	// to the byte.
	Tolerance Percent `json:"tolerance,omitempty"`
}

// points returns the sizes by their keys in the plan's JSON, which are the values of Moment.At.
func (e *Expected) points() []keyed[*uint64] {
	return []keyed[*uint64]{{"boot", &e.Boot}, {"load", &e.Load}, {"play", &e.Play}}
}

// Most returns the largest of the three sizes.
func (e Expected) Most() uint64 { return max(e.Boot, e.Load, e.Play) }

// Band returns the least and the most bytes that the tolerance allows for an expected size.
func (e Expected) Band(size uint64) (least, most uint64) {
	share := uint64(min(max(e.Tolerance, 0), 100))
	high, low := bits.Mul64(size, share)
	tolerated, _ := bits.Div64(high, low, 100)
	return size - tolerated, plus(size, tolerated)
}

package budget

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// The shape of a plan in JSON. Reading goes another way (see plan_read.go), because encoding/json takes the last of two
// equal keys and does not say where a fault is.
type (
	planJSON struct {
		Name    string       `json:"name"`
		Size    sizeJSON     `json:"size,omitempty"`
		Regions []regionJSON `json:"regions"`
		Frame   frameJSON    `json:"frame,omitzero"`
		Pads    padsJSON     `json:"pads,omitzero"`
		Limits  limitsJSON   `json:"limits,omitzero"`
		GoHeap  sizeJSON     `json:"go_heap,omitempty"`
	}
	regionJSON struct {
		Name string   `json:"name"`
		Size sizeJSON `json:"size"`
		Note string   `json:"note,omitempty"`
	}
	frameJSON struct {
		Buffers int      `json:"buffers"`
		Size    sizeJSON `json:"size"`
	}
	padsJSON struct {
		Workers int      `json:"workers"`
		Size    sizeJSON `json:"size"`
	}
	limitsJSON struct {
		Scopes   int `json:"scopes,omitempty"`
		Pools    int `json:"pools,omitempty"`
		Held     int `json:"held,omitempty"`
		Accounts int `json:"accounts,omitempty"`
	}
	sizeJSON uint64
)

func (s sizeJSON) MarshalText() ([]byte, error) { return []byte(sizeText(uint64(s))), nil }

// MarshalJSON writes the plan as ReadPlan reads it, sizes as "4MiB". It does not check the plan.
func (p Plan) MarshalJSON() ([]byte, error) {
	regions := make([]regionJSON, len(p.Regions))
	for i, r := range p.Regions {
		regions[i] = regionJSON{r.Name, sizeJSON(r.Size), r.Note}
	}
	return json.Marshal(planJSON{
		Name:    p.Name,
		Size:    sizeJSON(p.Size),
		Regions: regions,
		Frame:   frameJSON{p.Frame.Buffers, sizeJSON(p.Frame.Size)},
		Pads:    padsJSON{p.Pads.Workers, sizeJSON(p.Pads.Size)},
		Limits:  limitsJSON(p.Limits),
		GoHeap:  sizeJSON(p.GoHeap),
	})
}

// UnmarshalJSON is ParsePlan, so that a plan inside other JSON is read as strictly. Lines count from the plan's first.
func (p *Plan) UnmarshalJSON(data []byte) error {
	plan, err := ParsePlan(data)
	if err == nil {
		*p = plan
	}
	return err
}

var sizeUnits = []struct {
	name  string
	bytes uint64
}{{"TiB", 1024 * GiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}}

// sizeText writes a size in the largest unit that divides it: "4MiB", "65537".
func sizeText(size uint64) string {
	for _, unit := range sizeUnits {
		if size != 0 && size%unit.bytes == 0 {
			return strconv.FormatUint(size/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatUint(size, 10)
}

// What a value is that is not what it should be; the value stands before.
var (
	errNotSize  = errors.New(`is not a size (whole bytes, or as "4MiB" with KiB, MiB, GiB or TiB)`)
	errTooLarge = errors.New("is too large for a size")
	errNotCount = errors.New("is not a count (a whole number from 0)")
)

// parseSize reads what sizeText writes, and plain bytes.
func parseSize(text string) (uint64, error) {
	digits, scale := text, uint64(1)
	for _, unit := range sizeUnits {
		if rest, found := strings.CutSuffix(text, unit.name); found {
			digits, scale = rest, unit.bytes
		}
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, errNotSize
	}
	count, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || count > math.MaxUint64/scale {
		return 0, errTooLarge
	}
	return count * scale, nil
}

// parseCount reads a number of things. No count of a plan has more than five digits.
func parseCount(text string) (int, error) {
	count, err := strconv.ParseInt(text, 10, 32)
	if err != nil || count < 0 {
		return 0, errNotCount
	}
	return int(count), nil
}

// shortQuote quotes text for a message; a file may hold a very long one.
func shortQuote(text string) string {
	const most = 40
	if len(text) <= most {
		return strconv.Quote(text)
	}
	return strconv.Quote(text[:most]) + "…"
}

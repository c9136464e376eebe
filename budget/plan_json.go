package budget

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// The shape of a plan in JSON, as it is written. It is read key by key (plan_reader.go): json.Unmarshal
// takes the last of two equal keys, and tells one fault alone, by the Go type that it doesn't fit.
type (
	planJSON struct {
		Name    string       `json:"name"`
		Size    sizeJSON     `json:"size,omitempty"`
		Base    addressJSON  `json:"base,omitempty"`
		Regions []regionJSON `json:"regions"`
		Frame   frameJSON    `json:"frame,omitzero"`
		Scratch scratchJSON  `json:"scratch,omitzero"`
		Limits  limitsJSON   `json:"limits,omitzero"`
		Pages   pagesJSON    `json:"pages,omitzero"`
		GoHeap  sizeJSON     `json:"go_heap,omitempty"`
	}
	regionJSON struct {
		Name  string   `json:"name"`
		Size  restJSON `json:"size"`
		Slots int      `json:"slots,omitempty"`
		Note  string   `json:"note,omitempty"`
	}
	frameJSON struct {
		Buffers int      `json:"buffers"`
		Size    sizeJSON `json:"size"`
	}
	scratchJSON struct {
		Workers int      `json:"workers"`
		Each    int      `json:"each,omitempty"`
		Size    sizeJSON `json:"size"`
	}
	limitsJSON struct {
		Scopes int `json:"scopes,omitempty"`
		Pools  int `json:"pools,omitempty"`
		Owned  int `json:"owned,omitempty"`
		Labels int `json:"labels,omitempty"`
	}
	pagesJSON struct {
		Prefault Demand `json:"prefault,omitempty"`
		Lock     Demand `json:"lock,omitempty"`
		Huge     Demand `json:"huge,omitempty"`
		Guards   Demand `json:"guards,omitempty"`
		Base     Demand `json:"base,omitempty"`
	}
	sizeJSON    uint64
	restJSON    uint64 // a size or Rest
	addressJSON uint64
)

func (s sizeJSON) MarshalText() ([]byte, error) { return []byte(sizeText(uint64(s))), nil }

func (s restJSON) MarshalText() ([]byte, error) {
	if uint64(s) == Rest {
		return []byte("rest"), nil
	}
	return sizeJSON(s).MarshalText()
}

func (a addressJSON) MarshalText() ([]byte, error) { return []byte(addressText(uint64(a))), nil }

// MarshalJSON writes the plan as ReadPlan reads it, sizes as "4MiB". It does not check the plan, save that each demand
// has a word.
func (p Plan) MarshalJSON() ([]byte, error) {
	regions := make([]regionJSON, len(p.Regions))
	for i, r := range p.Regions {
		regions[i] = regionJSON{r.Name, restJSON(r.Size), r.Slots, r.Note}
	}
	return json.Marshal(planJSON{
		Name:    p.Name,
		Size:    sizeJSON(p.Size),
		Base:    addressJSON(p.Base),
		Regions: regions,
		Frame:   frameJSON{p.Frame.Buffers, sizeJSON(p.Frame.Size)},
		Scratch: scratchJSON{p.Scratch.Workers, p.Scratch.Each, sizeJSON(p.Scratch.Size)},
		Limits:  limitsJSON(p.Limits),
		Pages:   pagesJSON(p.Pages),
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

// What a value is that is not what it should be; the value stands before.
var (
	errNotObject     = errors.New("is not an object")
	errNotList       = errors.New("is not a list")
	errNotString     = errors.New("is not a string")
	errNotSize       = errors.New(`is not a size (whole bytes, or as "4MiB" with KiB, MiB, GiB or TiB)`)
	errNotSizeOrRest = errors.New(`is not a size (whole bytes, or as "4MiB" with KiB, MiB, GiB or TiB, or "rest")`)
	errTooLarge      = errors.New("is too large for a size")
	errNotCount      = errors.New("is not a count (a whole number from 0)")
	errNotAddress    = errors.New(`is not an address of 64 bits (a string as "0x200000000000", or a whole number)`)
	errNotDemand     = errors.New(`is not a demand ("off", "wished" or "required")`)
)

// planValue reads the JSON of one value of a plan. An object or a list is none of the others.
func planValue(data json.RawMessage, into any) (err error) {
	text, quoted := string(data), data[0] == '"'
	if quoted {
		err = json.Unmarshal(data, &text)
	}
	switch into := into.(type) {
	case []planKey:
		err = errNotObject
	case *[]RegionPlan:
		err = errNotList
	case *string:
		if !quoted {
			return errNotString
		}
		*into = text
	case *int:
		count, err := parseCount(text)
		if quoted && err == nil {
			return fmt.Errorf("is a string; write %d", count)
		}
		*into = count
		return err
	case *sizeJSON:
		*(*uint64)(into), err = parseSize(text)
	case *restJSON:
		*(*uint64)(into), err = parseSizeOrRest(text)
	case *addressJSON:
		if quoted {
			*(*uint64)(into), err = parseAddress(text)
		} else if *(*uint64)(into), err = strconv.ParseUint(text, 10, 64); err != nil {
			err = errNotAddress
		}
	case *Demand:
		*into, err = parseDemand(text)
	}
	return err
}

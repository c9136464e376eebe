package budget

import (
	"errors"
	"fmt"
	"strconv"
)

// planValue gives the function that reads the value of a key. What parse refuses is reported: the value, then the error.
func planValue[T any](r *planReader, value *T, parse func(planToken) (T, error)) func(key string) {
	return func(key string) {
		token := r.begin(key)
		parsed, err := parse(token)
		if err != nil {
			r.refuse(key, token, "%v", err)
			return
		}
		*value = parsed
	}
}

// What a value is that is not what it should be; the value stands before.
var (
	errNotString     = errors.New("is not a string")
	errNotSize       = errors.New(`is not a size (whole bytes, or as "4MiB" with KiB, MiB, GiB or TiB)`)
	errNotSizeOrRest = errors.New(`is not a size (whole bytes, or as "4MiB" with KiB, MiB, GiB or TiB, or "rest")`)
	errTooLarge      = errors.New("is too large for a size")
	errNotCount      = errors.New("is not a count (a whole number from 0)")
	errNotAddress    = errors.New(`is not an address of 64 bits (a string as "0x200000000000", or a whole number)`)
	errNotDemand     = errors.New(`is not a demand ("off", "wished" or "required")`)
)

func (r *planReader) text(value *string) func(string) {
	return planValue(r, value, func(token planToken) (string, error) {
		if !token.isString() {
			return "", errNotString
		}
		return token.string(), nil
	})
}

func (r *planReader) size(value *uint64) func(string) {
	return planValue(r, value, func(token planToken) (uint64, error) { return parseSize(token.bare()) })
}

func (r *planReader) sizeOrRest(value *uint64) func(string) {
	return planValue(r, value, func(token planToken) (uint64, error) {
		if token.isString() && token.string() == "rest" {
			return Rest, nil
		}
		size, err := parseSize(token.bare())
		switch {
		case size == Rest: // the number that stands for it in Go; in JSON only the word does
			err = errTooLarge
		case err == errNotSize:
			err = errNotSizeOrRest
		}
		return size, err
	})
}

func (r *planReader) count(value *int) func(string) {
	return planValue(r, value, func(token planToken) (int, error) {
		if !token.isString() {
			return parseCount(token.text)
		}
		count, err := parseCount(token.string())
		if err == nil {
			err = fmt.Errorf("is a string; write %d", count)
		}
		return 0, err
	})
}

func (r *planReader) address(value *uint64) func(string) {
	return planValue(r, value, func(token planToken) (uint64, error) {
		if token.isString() {
			return parseAddress(token.string())
		}
		address, err := strconv.ParseUint(token.text, 10, 64)
		if err != nil {
			err = errNotAddress
		}
		return address, err
	})
}

func (r *planReader) demand(value *Demand) func(string) {
	return planValue(r, value, func(token planToken) (Demand, error) {
		if !token.isString() {
			return Default, errNotDemand
		}
		return parseDemand(token.string())
	})
}

package platform

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

const hugeDirectory = "sys/kernel/mm/transparent_hugepage"

// checkHuge returns an error if the system refuses huge pages in [base, base+size).
//
// The file "enabled" holds the mode, as in "always [madvise] never". Since Linux 6.8 each size also
// has its own mode, in which "inherit" refers to that file.
func (t teller) checkHuge(base, size uint64) error {
	mode, err := t.hugeMode(hugeDirectory + "/enabled")
	if err != nil {
		return err
	}
	if words := t.words("proc/self/status", "THP_enabled:"); len(words) == 1 && words[0] == "0" {
		return errors.New("/proc/self/status says THP_enabled 0: this process or its parent " +
			"turned huge pages off (prctl PR_SET_THP_DISABLE)")
	}
	smallest, modes := t.hugeSizes(mode)
	switch {
	case smallest == 0:
		return fmt.Errorf("/%s/%s says never: write madvise into it", hugeDirectory, modes)
	case -base&(smallest-1) >= size || size-(-base&(smallest-1)) < smallest:
		return fmt.Errorf("the smallest huge page has %d bytes here, and none fits into the range", smallest)
	}
	return nil
}

// hugeSizes returns the smallest page size granted, in bytes. If no size is granted, it returns 0
// and the file with the setting.
func (t teller) hugeSizes(mode string) (smallest uint64, file string) {
	files, _ := fs.Glob(t.files, hugeDirectory+"/hugepages-*kB/enabled")
	smallest = math.MaxUint64
	known := false
	for _, file := range files {
		kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(path.Base(path.Dir(file)), "hugepages-"),
			"kB"), 10, 50)
		own, unread := t.hugeMode(file)
		if err != nil || unread != nil || kib == 0 || kib&(kib-1) != 0 {
			continue
		}
		known = true
		if own == "inherit" {
			own = mode
		}
		if own != "never" {
			smallest = min(smallest, kib<<10)
		}
	}
	switch {
	case known && smallest < math.MaxUint64:
		return smallest, ""
	case mode == "never":
		return 0, "enabled"
	case known:
		return 0, "hugepages-*kB/enabled"
	}
	if size, ok := t.number(hugeDirectory + "/hpage_pmd_size"); ok && size > 0 && size&(size-1) == 0 {
		return size, ""
	}
	return uint64(os.Getpagesize()), "" // the system doesn't report a size
}

// hugeMode returns the word in brackets in a file.
func (t teller) hugeMode(file string) (mode string, err error) {
	text, err := fs.ReadFile(t.files, file)
	if err != nil {
		return "", fmt.Errorf("%w: this kernel shows no transparent huge pages: %w", errors.ErrUnsupported, err)
	}
	_, mode, _ = strings.Cut(string(text), "[")
	mode, _, found := strings.Cut(mode, "]")
	if !found {
		return "", fmt.Errorf("%w: /%s holds no mode: %q", errors.ErrUnsupported, file, text)
	}
	return mode, nil
}

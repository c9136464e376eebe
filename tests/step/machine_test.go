package step

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// said is a test that keeps its first end.
type said struct{ end string }

func (s *said) Helper() {}

func (s *said) Skip(args ...any) {
	if s.end == "" {
		s.end = "skip: " + fmt.Sprint(args...)
	}
}

func (s *said) Fatal(args ...any) {
	if s.end == "" {
		s.end = "fatal: " + fmt.Sprint(args...)
	}
}

// TestMachine reads other limits than the machine's, on both sides of each need.
func TestMachine(t *testing.T) {
	defer func(r readings) { limits = r }(limits)
	enough := readings{
		files:     func() (uint64, bool) { return 256, true },
		addresses: func() (uint64, uint64, bool) { return 5000, 1000, true },
		lock:      func(uint64) (uint64, error) { return 0, nil },
		loopback:  func() error { return nil },
	}
	unlimited := enough
	unlimited.files = func() (uint64, bool) { return 0, false }
	limits = enough
	assert.False(t, Has(PlentyOfAddresses()))
	limits.addresses = func() (uint64, uint64, bool) { return 0, 0, false }
	assert.True(t, Has(PlentyOfAddresses()))
	unlimited.addresses = func() (uint64, uint64, bool) { return 0, 0, false }
	few, full, over := enough, enough, enough
	few.files = func() (uint64, bool) { return 255, true }
	full.addresses = func() (uint64, uint64, bool) { return 5000, 1001, true }
	over.addresses = func() (uint64, uint64, bool) { return 5000, 6000, true } // lowered since
	unlocked, down := enough, enough
	unlocked.lock = func(uint64) (uint64, error) { return 7, errors.New("operation not permitted") }
	down.loopback = func() error { return errors.New("network is unreachable") }
	for _, c := range []struct {
		machine readings
		lack    string
	}{
		{enough, ""},
		{unlimited, ""},
		{few, "256 open files, and the limit (RLIMIT_NOFILE) is 255"},
		{full, "4000 bytes of addresses, and the limit (RLIMIT_AS) of 5000 leaves 3999"},
		{over, "4000 bytes of addresses, and the limit (RLIMIT_AS) of 5000 leaves 0"},
		{unlocked, "8 bytes of locked memory, and the limit (RLIMIT_MEMLOCK) is 7 without CAP_IPC_LOCK: operation " +
			"not permitted"},
		{down, "the loopback network: network is unreachable"},
	} {
		limits = c.machine
		needs := []Need{Files(256), Addresses(4000), LockedMemory(8), Loopback()}
		assert.Equal(t, c.lack == "", Has(needs...))
		for _, all := range []string{"", "1"} {
			t.Setenv("REQUIRE_ALL", all)
			var here said
			Machine(&here, needs...)
			switch {
			case c.lack == "":
				assert.Empty(t, here.end)
			case all == "":
				assert.Equal(t, "skip: not proven here: the test needs "+c.lack, here.end)
			default:
				assert.Equal(t, "fatal: REQUIRE_ALL is set, and the test needs "+c.lack, here.end)
			}
		}
	}
}

// runs is a testing.M that keeps the value of -test.skip.
type runs struct{ skip string }

func (r *runs) Run() int {
	r.skip = flag.Lookup("test.skip").Value.String()
	return 7
}

func TestMainLeavesExamplesOut(t *testing.T) {
	defer func(r readings, skip string) {
		limits, stdout = r, os.Stdout
		require.NoError(t, flag.Set("test.skip", skip))
	}(limits, flag.Lookup("test.skip").Value.String())
	for _, c := range []struct {
		down            bool
		all, skip, then string
		code            int
	}{
		{false, "", "", "", 7},
		{false, "1", "", "", 7},
		{true, "", "", "^Example_udp$", 7},
		{true, "", "^TestSlow$", "^TestSlow$|^Example_udp$", 7},
		{true, "1", "", "", 1},
	} {
		t.Setenv("REQUIRE_ALL", c.all)
		require.NoError(t, flag.Set("test.skip", c.skip))
		limits.loopback = func() error {
			if c.down {
				return errors.New("network is unreachable")
			}
			return nil
		}
		var m runs
		var text strings.Builder
		stdout = &text
		assert.Equal(t, c.code, Main(&m, "^Example_udp$", Loopback()))
		switch {
		case !c.down:
			assert.Empty(t, text.String())
		case c.all == "":
			assert.Equal(t, "not proven here: ^Example_udp$ needs the loopback network: network is unreachable\n",
				text.String())
		default:
			assert.Equal(t,
				"REQUIRE_ALL is set, and ^Example_udp$ needs the loopback network: network is unreachable\n",
				text.String())
		}
		assert.Equal(t, c.then, m.skip)
	}
}

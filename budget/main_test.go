package budget_test

import (
	"os"
	"testing"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/step"
)

func TestMain(m *testing.M) {
	if !step.Has(step.PlentyOfAddresses()) {
		// Closed budgets and threads keep their addresses: a few GiB after all tests. Open would
		// refuse the plans of the last ones, for want of another 640 MiB for threads.
		budget.IgnoreAddresses()
	}
	os.Exit(step.Main(m, "^Example_udpServer$", step.Loopback()))
}

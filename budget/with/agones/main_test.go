package agones

import (
	"os"
	"testing"

	"github.com/upfront-mem/upfront/tests/step"
)

func TestMain(m *testing.M) { os.Exit(step.Main(m, "^Example$", step.Loopback())) }

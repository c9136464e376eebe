package conformance

import (
	"os"
	"testing"

	"github.com/upfront-mem/upfront/arena_c"
)

const release = !arena_c.Crossing && !arena_c.Race

// thorough says whether the long forms of the tests run: in the release build, and in any with UPFRONT_SOAK (make soak). In
// the others each fast path costs several times as much, and the short forms meet all that such a build adds.
func thorough() bool { return (release || os.Getenv("UPFRONT_SOAK") != "") && !testing.Short() }

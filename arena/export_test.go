package arena

import "github.com/upfront-mem/upfront/arena/plain"

// IsStandard is for the test that compares it with the go command.
var IsStandard = plain.IsStandard

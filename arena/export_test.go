package arena

import "github.com/upfront-mem/upfront/arena/plain"

// IsStandard is for a comparison with the go command.
var IsStandard = plain.IsStandard

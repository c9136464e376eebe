package arena

import "github.com/upfront-mem/upfront/arena/plain"

var IsStandard = plain.IsStandard

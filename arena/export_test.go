package arena

// IsStandard is for the test that compares it with the go command.
var IsStandard = isStandard

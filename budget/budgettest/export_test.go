package budgettest

// FailOnce is the second half of FailEach, of a checked build.
var FailOnce = failOnce

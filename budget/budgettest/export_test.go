package budgettest

// FailOnce is the second half of FailEach, of a memtrace build.
var FailOnce = failOnce

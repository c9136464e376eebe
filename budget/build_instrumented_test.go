//go:build race || asan || memdebug

package budget_test

// instrumented builds pay for what they watch: their figures of cost are not the release build's.
const instrumented = true

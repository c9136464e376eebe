//go:build memtrace && (memdebug || asan)

package arena_c

// memtrace puts back what it refuses, which a stretched row doesn't hear of; the compiler's message is this line.
var _ int = "upfront: memtrace goes neither with memdebug nor asan"

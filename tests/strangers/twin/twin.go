// Package twin has the halves on the Go heap, as a careful Go programmer writes them: slabs, free
// lists, reused arrays, and no string that is made twice.
package twin

// Package twin has the versions on the Go heap, as a careful Go programmer writes them: with slabs,
// free lists and reused arrays, and without making a string twice.
package twin

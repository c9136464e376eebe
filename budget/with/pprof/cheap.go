package pprof

import (
	"bytes"
	"net/http"

	"github.com/upfront-mem/upfront/arena_c"
)

// CHeapHandler serves the profile of C's heap, and of heaps in regions that C uses
// (malloc.WriteProfile), as [Handler] serves that of a budget. A program that imports package
// arena/with/malloc mounts it as /debug/pprof/cmalloc. In another program, and if the plan has no
// profile, the status is 404.
func CHeapHandler() http.Handler {
	return readOnly(func(w http.ResponseWriter) {
		var profile bytes.Buffer
		h := arena_c.ProcessHeapOf()
		if h == nil {
			http.Error(w, "the program keeps C's own malloc; import github.com/upfront-mem/upfront/arena/with/malloc",
				http.StatusNotFound)
			return
		}
		if err := h.WriteProfile(&profile); err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		attach(w, "cmalloc")
		_, _ = w.Write(profile.Bytes()) // fails if the reader has gone
	})
}

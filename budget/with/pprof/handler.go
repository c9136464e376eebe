package pprof

import (
	"fmt"
	"net/http"
	"time"

	"github.com/upfront-mem/upfront/budget"
)

// Handler serves the profile of the budget as last published ([budget.Budget.Published]), for go
// tool pprof and browsers. It accepts GET and HEAD, on any goroutine, and doesn't wait for the end
// of a load or frame. It refuses ?seconds, because the profile shows a moment and not a rate. The
// handler has no access control, so mount it only where you would mount net/http/pprof.
func Handler(b *budget.Budget) http.Handler {
	return readOnly(func(w http.ResponseWriter) { serve(w, b.Published()) })
}

// readOnly calls serve for GET and HEAD without ?seconds.
func readOnly(serve func(http.ResponseWriter)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		switch {
		case req.Method != http.MethodGet && req.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "a profile is read-only: use GET or HEAD", http.StatusMethodNotAllowed)
		case req.URL.Query().Has("seconds"):
			http.Error(w, "?seconds isn't supported: the profile shows the bytes in use now", http.StatusBadRequest)
		default:
			serve(w)
		}
	})
}

func serve(w http.ResponseWriter, r budget.Report) {
	p, err := Profile(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	p.TimeNanos = time.Now().UnixNano()
	attach(w, r.Name) // a plan's name needs no escaping
	_ = p.Write(w)    // fails if the reader has gone
}

// attach sets the header of a profile with that name.
func attach(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name+".pb.gz"))
}

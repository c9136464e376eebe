package pprof

import (
	"fmt"
	"net/http"
	"time"

	"github.com/upfront-mem/upfront/budget"
)

// Handler serves the profile of what the budget last published ([budget.Budget.Published]), for
// go tool pprof and for browsers. It answers GET and HEAD, on any number of goroutines, and never
// waits for the program. A profile of some ?seconds isn't supported, and refused: what lives in a
// budget is a state, and no rate. It has no access control: mount it where net/http/pprof may be.
func Handler(b *budget.Budget) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		switch {
		case req.Method != http.MethodGet && req.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "a profile can only be read: GET or HEAD", http.StatusMethodNotAllowed)
		case req.URL.Query().Has("seconds"):
			http.Error(w, "seconds: not supported; the profile says what is in use now", http.StatusBadRequest)
		default:
			serve(w, b.Published())
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
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", r.Name+".pb.gz")) // a plan's name is plain
	_ = p.Write(w)                                                                                 // an error is the reader's, who has gone
}

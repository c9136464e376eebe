package live

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

const (
	urlMax   = 1024             // bytes of a path with its query
	patience = 10 * time.Second // with who reads an answer
)

// policy lets a page load what its own server has, and nothing else; no style or script stands in the page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Guard stands before a handler that tells of a program and changes nothing. It lets GET and HEAD through, of short
// URLs, and answers the rest itself; it says with each answer that a browser may load nothing from elsewhere, and gives
// whoever reads it 10 seconds.
//
// A browser can be led to this machine by a name of somebody else's (DNS rebinding). So the name that a request calls
// the server by is an address, localhost, or one of hosts; another is refused with status 403, and so is what
// another site's page asks for.
func Guard(h http.Handler, hosts ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		harden(w.Header())
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)) // not every writer has one
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD: this page changes nothing", http.StatusMethodNotAllowed)
		case len(r.URL.Path)+len(r.URL.RawQuery) > urlMax:
			http.Error(w, "a shorter URL, please", http.StatusRequestURITooLong)
		case !known(r.Host, hosts):
			http.Error(w, "this server isn't known by that name: call it by its address, by localhost, or name it in Hosts",
				http.StatusForbidden)
		case foreign(r):
			http.Error(w, "another site's page asks", http.StatusForbidden)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

func harden(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// known says that nobody else can own the name: rebinding needs one that somebody registered.
func known(host string, hosts []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return true
	}
	return slices.ContainsFunc(hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// foreign says that a browser asks on behalf of another server's page, other than by a link that somebody followed. To a server
// that isn't this machine, browsers say by Origin alone whose page it is, and of streams.
func foreign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		_, host, _ := strings.Cut(origin, "://")
		return !strings.EqualFold(host, r.Host)
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return r.Header.Get("Sec-Fetch-Mode") != "navigate"
	}
	return false
}

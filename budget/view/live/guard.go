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
	patience = 10 * time.Second // for the client to read an answer
)

// policy lets a page load only files of its own server, with no inline style or script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Guard protects a handler that shows data of a program and changes nothing. The handler that Guard
// returns passes GET and HEAD requests with URLs of up to 1024 bytes on to h. It refuses all other
// requests. Unless h changes the header or the deadline, an answer forbids the browser to load from
// other servers, and the client has 10 seconds to read it.
//
// An attacker's host name can lead a browser to this machine (DNS rebinding). So the host of a
// request must be an address, localhost, or one of hosts. Requests for other hosts get status 403.
// Requests that a browser marks as those of other origins (Origin, Sec-Fetch-Site) also get status
// 403, except for navigation, such as a followed link. Over HTTP to another machine, browsers mark
// only some requests.
func Guard(h http.Handler, hosts ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		// not every writer has deadlines
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience))
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the page is read-only: use GET or HEAD", http.StatusMethodNotAllowed)
		case len(r.URL.Path)+len(r.URL.RawQuery) > urlMax:
			http.Error(w, "the URL is longer than 1024 bytes", http.StatusRequestURITooLong)
		case !known(r.Host, hosts):
			http.Error(w, "this server doesn't have that name: use its address or localhost, or add the name to Hosts",
				http.StatusForbidden)
		case foreign(r):
			http.Error(w, "requests by pages of other sites are refused", http.StatusForbidden)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// known reports whether a host is an address, localhost or one of hosts. No attacker can own an
// address or localhost: rebinding needs a registered name.
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

// foreign reports whether another site's page makes the request, other than by a followed link.
// Over HTTP to another machine browsers send no Sec-Fetch headers. There, only the header Origin
// names the site; browsers also send it for streams.
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

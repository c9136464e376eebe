// Package live serves a web page of a running budget: package view's pictures of its report and
// timeline, the report as tables ([view.ReportHTML]), and files.
//
//	page := live.New(b, live.Options{})
//	defer page.Close()
//	server, err := live.Listen("127.0.0.1:0", page, live.ServerOptions{})
//	if err != nil {
//		return err
//	}
//	defer server.Close()
//	fmt.Println("memory on", server.URL())
//
// A [Page] is an [http.Handler] with relative links, so a program can mount it in its own server:
//
//	mux.Handle("/memory/", http.StripPrefix("/memory", page))
//
// The page reads [budget.Budget.Published], by default at most four times a second, and only while
// it has viewers. All viewers share one copy. The page is read-only, and loads nothing from other
// servers. Server-sent events bring changes. Without JavaScript the page is static.
//
// The files are report.json (the whole [budget.Report]) and map.svg. With Options.Timeline there
// are also timeline.json, timeline.csv and timeline.svg. The page shows the pictures, and renews
// them at most every two seconds.
//
// # Costs
//
// Without viewers a page costs no time. With viewers, it copies the report up to four times a
// second, under the locks that a Load takes when the Load publishes. It makes the HTML once for all
// viewers. For 84 arenas the HTML has 14 KiB. Each time, the HTML takes 0.6 MiB of Go allocations,
// so 2.4 MiB a second. The picture, at most every two seconds, has 48 KiB and takes 0.9 MiB of Go
// allocations. Add these amounts to your go_heap.
//
// # Limits
//
// Clients that send requests without pause take processor time from the program. All clients share
// an answer's text, and [Listen] limits the bandwidth. In your own server, that server's limits
// apply.
//
// A page has no password and no encryption. [Listen] accepts only addresses of this machine, unless
// ServerOptions.Public is set. If you mount a page in another server, you decide on access. The
// page shows the names of labels, scopes and regions, and in checked builds source lines.
//
// # Goroutines
//
// Any goroutine may call any function. A page has no goroutine of its own: the goroutines of its
// requests do the work, and end with [Page.Close] or with the server.
package live

// Package live shows a running budget on a page: what package view draws of its report and of its
// timeline, the same as tables ([view.ReportHTML]), and as files.
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
// A [Page] is an [http.Handler] whose links are relative: a program that has a server mounts it there, below any path.
//
//	mux.Handle("/memory/", http.StripPrefix("/memory", page))
//
// The page reads [budget.Budget.Published], at most four times a second and only while somebody looks, however many do:
// one copy serves all. It changes nothing, and what it shows is in the page itself: no request leaves the server, and
// without JavaScript it is a still picture. With it, server-sent events bring what changed.
//
// Beside the page lie report.json (all figures, as [budget.Report] reads them), map.svg, and with Options.Timeline
// timeline.json, timeline.csv and timeline.svg. The page shows both pictures, and fetches them again every two seconds.
//
// # Cost
//
// Nobody looks: nothing. Somebody does: a copy of the figures, four times a second, which takes the
// locks that a Load takes when it publishes, and the HTML of it, made once for all. A page of 84
// arenas is 13 KiB and takes 0.5 MiB of the Go heap, 2 MiB a second; its picture, every two
// seconds, is 48 KiB and takes 0.8 MiB. A program whose plan has a go_heap leaves room for that.
//
// # What it can't do
//
// Who asks again and again takes some of the machine from the program: what is made is made once for all, and [Listen] writes at a
// pace, but a page in a server of your own has that server's bounds.
//
// There is no password and no encryption. [Listen] takes addresses of this machine alone unless it is told otherwise;
// who mounts a page elsewhere decides who reaches it. The figures tell the names of labels, scopes and regions, and in
// checked builds lines of the program.
//
// # Goroutines
//
// All here is for any goroutine. A page has none of its own: those of its requests do the work, and end with
// [Page.Close] or with the server.
package live

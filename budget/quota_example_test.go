package budget_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/upfront-mem/upfront/budget"
)

// Queries take memory that no region has. A query waits until its memory fits, instead of failing
// or ending the process.
func ExampleBudget_Quota() {
	b, err := budget.Open(budget.Plan{Name: "db", Quotas: []budget.QuotaPlan{
		{Name: "query", Size: 256 * budget.MiB, Tenants: 64, Tenant: 64 * budget.MiB},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()

	query := func(ctx context.Context, tenant string, estimate uint64) error {
		quota, err := b.Quota("query").Tenant(tenant)
		if err != nil {
			return err
		}
		r, err := quota.Reserve(ctx, estimate) // waits in turn
		defer r.Release()
		if err != nil {
			return err
		}
		// ... run the query. Its hash table is larger than estimated:
		if err := r.Grow(16 * budget.MiB); err != nil { // never waits
			return err
		}
		r.Shrink(40 * budget.MiB) // now the size of the result is known
		return nil
	}
	fmt.Println(query(context.Background(), "alice", 32*budget.MiB))
	fmt.Println(query(context.Background(), "bob", 128*budget.MiB))
	// Output:
	// <nil>
	// budget "db": quota query, tenant "bob" is full: asked for 134217728 bytes, 67108864 of 67108864 are free; raise quotas.query.tenant in the plan to 134217728 or more
}

// inTurn lets requests wait in turn until their memory fits.
func inTurn(quota *budget.Quota, each uint64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r, err := quota.Reserve(req.Context(), each)
		if err != nil { // too large, or the queue is full, or the client has gone
			log.Print(err) // it names other tenants
			http.Error(w, "no memory for this request", http.StatusServiceUnavailable)
			return
		}
		defer r.Release()
		next.ServeHTTP(w, req)
	})
}

// An existing handler gets a quota in ten lines: those of inTurn.
func ExampleQuota_Reserve() {
	b, err := budget.Open(budget.Plan{Name: "web",
		Quotas: []budget.QuotaPlan{{Name: "request", Size: 64 * budget.MiB}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	report := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "a report") })
	mux := http.NewServeMux()
	mux.Handle("GET /report", inTurn(b.Quota("request"), 4*budget.MiB, report))
	mux.Handle("GET /huge", inTurn(b.Quota("request"), 128*budget.MiB, report))
	for _, path := range []string{"/report", "/huge"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// 200 a report
	// 503 no memory for this request
}

// Each tenant has a limit of its own, and tenants are served in turn: the single query of bob isn't
// behind the many of alice.
func ExampleQuota_Tenant() {
	b, err := budget.Open(budget.Plan{Name: "db", Quotas: []budget.QuotaPlan{
		{Name: "query", Size: 100, Tenants: 10, Tenant: 60},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	ctx := context.Background()
	for _, query := range []struct {
		tenant string
		bytes  uint64
	}{{"alice", 60}, {"bob", 40}, {"alice", 70}} {
		quota, err := b.Quota("query").Tenant(query.tenant)
		if err != nil {
			fmt.Println(err)
			return
		}
		r, err := quota.Reserve(ctx, query.bytes)
		defer r.Release()
		fmt.Println(errors.Is(err, budget.ErrFull), b.Published().Arena("query").Labels)
	}
	// Output:
	// false [{alice 60 0 60 0 0 0}]
	// false [{alice 60 0 60 0 0 0} {bob 40 0 40 0 0 0}]
	// true [{alice 60 0 60 0 0 0} {bob 40 0 40 0 0 0}]
}

// A query estimates its memory, grows when the estimate was too low, and fails then if the quota is
// full: a query that waited while it holds memory could wait forever.
func ExampleReservation_Grow() {
	b, err := budget.Open(budget.Plan{Name: "db", Quotas: []budget.QuotaPlan{{Name: "query", Size: 1000}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	ctx := context.Background()
	first, err := b.Quota("query").Reserve(ctx, 600)
	fmt.Println(err)
	second, err := b.Quota("query").Reserve(ctx, 300)
	fmt.Println(err)
	err = second.Grow(200)
	fmt.Println(errors.Is(err, budget.ErrFull), err)
	first.Shrink(100)
	fmt.Println(second.Grow(200))
	first.Release()
	second.Release()
	// Output:
	// <nil>
	// <nil>
	// true budget "db": quota query is full: asked for 200 bytes, 100 of 1000 are free; raise quotas.query.size in the plan to 1100 or more
	// <nil>
}

// A quota that only observes refuses and delays nothing. After some time its report has the size
// with which it would have refused nothing, and the waits that a smaller size would have made.
func ExampleQuotaPlan() {
	b, err := budget.Open(budget.Plan{Name: "db", Quotas: []budget.QuotaPlan{
		{Name: "query", Size: 1000, Observe: true},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	var list [3]budget.Reservation
	for i := range list {
		if list[i], err = b.Quota("query").Reserve(ctx, 400); err != nil {
			fmt.Println(err)
		}
	}
	for i := range list {
		list[i].Release()
	}
	report := b.Published()
	var waits *budget.Waits = report.Arena("query").Waits
	fmt.Println(report.Arena("query").Peak, "bytes at most;", waits.Waited, "would have waited")
	fmt.Println(waits.Observed, waits.Waiting, waits.Longest == waits.Total)
	plan, err := budget.Suggest(report)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := json.Marshal(plan.Headroom(50).Quotas[0].Size)
	fmt.Println(string(text), err)
	fmt.Println(b.Close())
	// Output:
	// 1200 bytes at most; 1 would have waited
	// true 0 true
	// 2048 <nil>
	// <nil>
}

// Players wait for a room. The next room that its owner releases is theirs.
func ExampleSlots_AcquireWait() {
	b, err := budget.Open(budget.Plan{Name: "server", Regions: []budget.RegionPlan{
		{Name: "room", Size: 64 * budget.KiB, Slots: 1, Waiters: 100},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	room, err := b.Slots("room").AcquireWait(ctx)
	fmt.Println(room.Name(), err)
	next := make(chan budget.Region)
	go func() {
		room, err := b.Slots("room").AcquireWait(ctx)
		if err != nil {
			fmt.Println(err)
		}
		next <- room
	}()
	if err := room.Release(ctx); err != nil {
		fmt.Println(err)
	}
	room = <-next
	fmt.Println(room.Name(), room.Release(ctx), b.Close())
	// Output:
	// room 0 <nil>
	// room 0 <nil> <nil>
}

// The memory of a GPU isn't the process's: it counts in pages of 2 MiB, and warns at 90 %.
func ExampleReservation_Shrink() {
	b, err := budget.Open(budget.Plan{Name: "model",
		Quotas: []budget.QuotaPlan{
			{Name: "gpu", Size: 100 * budget.MiB, In: "device", Piece: 2 * budget.MiB, Warn: 90}},
		OnWarn: func(w budget.Warning) { fmt.Println("warning:", w) }})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := b.Quota("gpu").Reserve(context.Background(), 97*budget.MiB)
	fmt.Println(b.Published().Arena("gpu").Used/budget.MiB, err)
	r.Shrink(96 * budget.MiB)
	fmt.Println(b.Published().Arena("gpu").Used/budget.MiB, b.Report().Cost.Quotas)
	// without a Release
	err = b.Close()
	fmt.Println(b.Report().Leaks.Quotas, err != nil)
	// Output:
	// warning: gpu holds 102760448 of 104857600 bytes, and warns at 90%; its size is quotas.gpu.size in the plan
	// 98 <nil>
	// 2 0
	// 1 true
}

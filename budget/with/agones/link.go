package agones

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/upfront-mem/upfront/budget"
)

// counterName is the name of the counter, and of the label.
const counterName = "rooms"

// labelKey is the label's name in Kubernetes.
const labelKey = "agones.dev/sdk-" + counterName

const (
	pollEvery     = 250 * time.Millisecond
	checkEvery    = 5 * time.Second
	retryFirst    = 250 * time.Millisecond
	retryMost     = 8 * time.Second
	defaultPeriod = 5 * time.Second // Agones' own default, until the spec is known
)

// lastAllocated is the annotation with the time of the last allocation, also of one by the SDK.
const lastAllocated = "agones.dev/last-allocated"

// The states of a game server that a link asks for.
const (
	ready     = "Ready"
	allocated = "Allocated"
)

// Options are the options of a [Link].
type Options struct {
	// Ticks returns the program's heartbeat: any number that changes while the program is well,
	// such as its count of ticks. It must also change while no room is in use, or Agones replaces
	// the idle server. The link calls Ticks from its own goroutine. Required.
	Ticks func() uint64
	// InUse returns the number of rooms in use. The default is the number of slots that are taken.
	// The link calls InUse several times a second from its own goroutine, so InUse mustn't block.
	InUse func() int
	// Capacity is the maximum of rooms in use. The default, and the highest value, is the number of
	// the region's slots. Set Capacity if some slots aren't for rooms, such as slots for the next
	// maps.
	Capacity int
	// Log gets the first error of each kind of call, and an error if the game server's state isn't
	// as the link asked. The link calls Log from its own goroutine. By default errors are dropped.
	Log func(error)
}

// Link ties a budget to a sidecar. [Client.Link] starts a Link.
type Link struct {
	c        *Client
	o        Options
	capacity int64
	draining atomic.Bool
	ctx      context.Context
	cancel   context.CancelFunc
	ended    chan struct{}

	// The rest belongs to the link's goroutine.
	duties  []*duty // the most urgent first
	pulse   *duty   // of Health
	check   *duty   // of compare
	beat    uint64  // Options.Ticks at the last Health
	health  HealthSpec
	asked   string  // the last state that the sidecar accepted
	seen    Counter // the sidecar's, or unknown
	label   string  // the sidecar's
	past    string  // the last allocation seen before the sidecar accepted Ready
	strange string  // the last error about the game server's state
}

// unknown is a counter that equals no counter of a link.
var unknown = Counter{-1, -1}

// duty is one of the kinds of calls that a link makes.
type duty struct {
	needed  func() bool
	call    func(ctx context.Context) error
	every   time.Duration // after a call that succeeded
	most    time.Duration // the longest wait after a call that failed; the wait doubles up to it
	next    time.Time     // no call is made before
	wait    time.Duration // after the last call, if it failed
	failing bool          // Log got the error
}

// Link starts a link between the slots of b's region and the sidecar. Call it when the program
// accepts players. The link sends the first Health when Options.Ticks has changed. Agones waits for
// the first Health as long as the fleet's initial delay ([HealthSpec]).
//
// Link itself makes no call. If there is no sidecar, Link succeeds, and the link waits for a
// sidecar. End the link by Shutdown or Close before you close b. Link fails if an option is wrong.
// It panics if b's plan has no such region, or a region without slots.
func (c *Client) Link(b *budget.Budget, region string, o Options) (*Link, error) {
	slots := b.Slots(region)
	most := 0
	for _, r := range b.Plan().Regions {
		if r.Name == region {
			most = r.Slots
		}
	}
	switch {
	case o.Ticks == nil:
		return nil, errors.New("agones: Options.Ticks is missing: the link needs the program's heartbeat")
	case o.Capacity < 0 || o.Capacity > most:
		return nil, fmt.Errorf("agones: Options.Capacity is %d: region %s has %d slots", o.Capacity, region, most)
	case o.Capacity == 0:
		o.Capacity = most
	}
	if o.InUse == nil {
		o.InUse = func() int { return most - slots.Available() }
	}
	l := &Link{c: c, o: o, capacity: int64(o.Capacity), ended: make(chan struct{}), beat: o.Ticks(), seen: unknown,
		health: HealthSpec{Period: defaultPeriod}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	on := func(needed func() bool, call func(ctx context.Context) error) *duty {
		d := &duty{needed: needed, call: call, every: pollEvery, most: retryMost}
		l.duties = append(l.duties, d)
		return d
	}
	// Health is first, so at most one slow call delays it.
	l.pulse = on(l.alive, l.sendHealth)
	l.check = on(func() bool { return true }, l.compare)
	l.check.every = checkEvery
	on(func() bool { return l.wanted() != l.asked }, l.changeState)
	on(func() bool { return l.seen != l.counter() }, l.changeCounter)
	on(func() bool { return l.label != l.wantedLabel() }, l.changeLabel)
	go l.run()
	return l, nil
}

// Drain declares that the server accepts no more players: its label becomes "draining", and the
// link begins no call of Ready or Allocate again. Drain doesn't wait. Call it before the last
// matches end.
func (l *Link) Drain() { l.draining.Store(true) }

// Shutdown ends the link, and asks Agones to remove the server. It repeats a failed call until ctx
// ends, and then returns the last call's error. Call it after the last match.
func (l *Link) Shutdown(ctx context.Context) error {
	l.Close()
	wait := retryFirst
	for {
		err := l.c.Shutdown(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
		wait = min(2*wait, retryMost)
	}
}

// Close ends the link and interrupts the current call. After Close the link makes no call. Without
// Health, Agones soon replaces the server.
func (l *Link) Close() {
	l.cancel()
	<-l.ended
}

func (l *Link) run() {
	defer close(l.ended)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for l.ctx.Err() == nil {
		if l.work() {
			continue
		}
		select {
		case <-l.ctx.Done():
		case <-tick.C:
		}
	}
}

// work makes the first call that is due, and reports whether one was.
func (l *Link) work() bool {
	for _, d := range l.duties {
		if time.Now().Before(d.next) || !d.needed() {
			continue
		}
		err := d.call(l.ctx)
		switch {
		case err == nil:
			if d.failing { // the sidecar is back: the other calls needn't wait
				for _, other := range l.duties {
					other.next = time.Time{}
				}
			}
			d.wait, d.failing = 0, false
			d.next = time.Now().Add(d.every)
		case l.ctx.Err() == nil:
			d.wait = min(max(2*d.wait, retryFirst), d.most)
			d.next = time.Now().Add(d.wait)
			if !d.failing {
				l.log(err)
			}
			d.failing = true
		}
		return true
	}
	return false
}

func (l *Link) log(err error) {
	if l.o.Log != nil {
		l.o.Log(err)
	}
}

// alive reports whether the program's heartbeat moved since the last Health.
func (l *Link) alive() bool { return !l.health.Disabled && l.o.Ticks() != l.beat }

func (l *Link) sendHealth(ctx context.Context) error {
	l.beat = l.o.Ticks()
	l.pulse.every = l.health.Period / 2
	l.pulse.most = l.pulse.every
	return l.c.Health(ctx)
}

// wanted returns the state that the sidecar should have accepted last.
func (l *Link) wanted() string {
	switch {
	case l.draining.Load():
		return l.asked
	case l.counter().Count > 0:
		return allocated
	}
	return ready
}

func (l *Link) changeState(ctx context.Context) (err error) {
	state := l.wanted()
	switch state {
	case l.asked: // a drain began meanwhile
	case allocated:
		err = l.c.Allocate(ctx)
	case ready:
		err = l.c.Ready(ctx)
	}
	if err == nil {
		l.asked = state
		l.check.next = time.Now().Add(checkEvery) // the game server follows later
	}
	return err
}

// counter returns the counter as it should be.
func (l *Link) counter() Counter {
	return Counter{max(0, min(int64(l.o.InUse()), l.capacity)), l.capacity}
}

// changeCounter sets the capacity, or else the count, and compares the answer.
func (l *Link) changeCounter(ctx context.Context) (err error) {
	want := l.counter()
	set, key, n, got := l.c.SetCount, "count", want.Count, &l.seen.Count
	if l.seen.Capacity != want.Capacity {
		set, key, n, got = l.c.SetCapacity, "capacity", want.Capacity, &l.seen.Capacity
	}
	if l.seen, err = set(ctx, counterName, n); err != nil {
		l.seen = unknown
		return err
	}
	if *got != n {
		return fmt.Errorf("agones: the %s of the counter %q was set to %d, and is %d", key, counterName, n, *got)
	}
	return nil
}

func (l *Link) wantedLabel() string {
	switch c := l.counter(); {
	case l.draining.Load():
		return "draining"
	case c.Count == c.Capacity:
		return "full"
	}
	return "free"
}

func (l *Link) changeLabel(ctx context.Context) error {
	label := l.wantedLabel()
	err := l.c.SetLabel(ctx, counterName, label)
	if err == nil {
		l.label = label
	}
	return err
}

// compare reads the game server. A difference from the calls that the sidecar accepted means that a
// call was lost or refused; then the other duties repeat it.
func (l *Link) compare(ctx context.Context) error {
	g, err := l.c.GameServer(ctx)
	if err != nil {
		return err
	}
	if l.health = g.Health; l.health.Period <= 0 {
		l.health.Period = defaultPeriod
	}
	l.label = g.Labels[labelKey]
	if counter, ok := g.Counters[counterName]; ok {
		l.seen = counter
	} else {
		l.seen = unknown
	}
	strange := ""
	allocation := g.Annotations[lastAllocated]
	if l.asked != ready {
		l.past = allocation
	}
	// Ready ends the allocation before it, unless a sidecar loses it.
	lost := g.State == allocated && allocation != "" && allocation == l.past
	switch g.State {
	case l.asked:
	case "Shutdown", "Unhealthy", "Error":
		strange = "Agones removes it"
	case "RequestReady", "Reserved", allocated: // of an allocation, players may be on their way
		if l.asked == ready && !lost {
			break
		}
		fallthrough
	default:
		if l.asked != "" && !l.draining.Load() {
			strange = fmt.Sprintf("the sidecar accepted %s, and is asked again", l.asked)
			l.asked = ""
		}
	}
	if strange != "" {
		strange = fmt.Sprintf("agones: the game server is %s: %s", start([]byte(g.State)), strange)
		if strange != l.strange {
			l.log(errors.New(strange))
		}
	}
	l.strange = strange
	return nil
}

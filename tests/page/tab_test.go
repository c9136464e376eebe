package page

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// form is a size, a colour scheme, and whether scripts run.
type form struct {
	width  int64
	scheme string
	still  bool // without JavaScript
}

var forms = []form{{1440, "light", false}, {1440, "dark", false}, {390, "light", false}, {390, "dark", false}}

func (f form) String() string {
	if f.still {
		return fmt.Sprintf("%d-%s-still", f.width, f.scheme)
	}
	return fmt.Sprintf("%d-%s", f.width, f.scheme)
}

// tab is a page in the browser. It collects the page's faults.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu      sync.Mutex
	faults  []string
	answers int // of the server
}

func open(t *testing.T, path string, f form) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(world.browser)
	t.Cleanup(end)
	p := &tab{t: t, ctx: ctx}
	// opens the tab, which lives as long as this context
	require.NoError(t, chromedp.Do(ctx, prepare(f)))
	p.listen()
	p.do(chromedp.Navigate(world.origin + path))
	return p
}

func (p *tab) see(f form) {
	p.t.Helper()
	p.do(prepare(f))
	p.t.Logf("%s", f)
}

// hold checks a page in its form, and takes its picture. The page isn't wider than its window,
// axe-core finds nothing, and the keyboard reaches each element once, in order and visibly.
func (p *tab) hold(name string, f form) {
	p.t.Helper()
	assert.LessOrEqual(p.t, eval[int64](p, "document.documentElement.scrollWidth"), f.width, "its width")
	p.shot(name + "-" + f.String())
	for _, v := range p.axe() {
		assert.Fail(p.t, v.ID, "%s (%s): %v", v.Help, v.Impact, v.Nodes)
	}
	if f.scheme == "dark" {
		return
	}
	got, want := p.keyboard()
	var names []string
	for _, g := range got {
		assert.True(p.t, g.Seen, "%s: it has the focus, and doesn't show it", g.Name)
		names = append(names, g.Name)
	}
	assert.NotEmpty(p.t, want)
	assert.Equal(p.t, want, names)
}

// prepare sets the form of a tab.
func prepare(f form) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		return errors.Join(
			call(ctx, target, log.Enable, cdp.Empty{}),
			call(ctx, target, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
				Width: f.width, Height: 900, DeviceScaleFactor: 1, Mobile: f.width < 600}),
			call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: f.scheme},
					{Name: "prefers-reduced-motion", Value: "reduce"}}}),
			call(ctx, target, emulation.SetScriptExecutionDisabled,
				emulation.SetScriptExecutionDisabledParams{Value: f.still}))
	})
}

func call[P, R any](ctx context.Context, target *chromedp.Target, command cdp.Command[P, R], params P) error {
	_, err := cdp.Call(ctx, target, command, params)
	return err
}

// listen notes the page's faults.
func (p *tab) listen() {
	hear(p, runtime.ConsoleAPICalled, func(e runtime.EventConsoleAPICalled) {
		switch e.Type {
		case runtime.ConsoleAPICalledTypeError, runtime.ConsoleAPICalledTypeWarning, runtime.ConsoleAPICalledTypeAssert:
			p.fault("console: %s: %v", e.Type, e.Args)
		}
	})
	hear(p, runtime.ExceptionThrown, func(e runtime.EventExceptionThrown) {
		p.fault("exception: %s", e.ExceptionDetails.Text)
	})
	hear(p, log.EntryAdded, func(e log.EventEntryAdded) {
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			p.fault("log: %s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	})
	hear(p, network.RequestWillBeSent, func(e network.EventRequestWillBeSent) {
		if !strings.HasPrefix(e.Request.URL, world.origin+"/") {
			p.fault("a request leaves the origin: %s", e.Request.URL)
		}
	})
	hear(p, network.ResponseReceived, func(e network.EventResponseReceived) {
		if e.Response.Status >= 400 {
			p.fault("%d: %s", e.Response.Status, e.Response.URL)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.answers++
	})
}

// hear calls a function with each event of a kind, while the tab is open.
func hear[E any](p *tab, kind cdp.Event[E], heard func(E)) {
	events := chromedp.Events(p.ctx, kind)
	go func() {
		for e, err := range events {
			if err != nil {
				return // the tab is closed
			}
			heard(e)
		}
	}()
}

func (p *tab) fault(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

func (p *tab) clean() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	assert.Empty(p.t, p.faults)
	assert.Positive(p.t, p.answers, "requests are watched")
}

// do runs actions. Each has a time limit, so that a test ends.
func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, stop := context.WithTimeout(p.ctx, patience)
	defer stop()
	require.NoError(p.t, chromedp.Do(ctx, actions...))
}

func value[T any](p *tab, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, stop := context.WithTimeout(p.ctx, patience)
	defer stop()
	v, err := chromedp.Run(ctx, action)
	require.NoError(p.t, err)
	return v
}

// eval returns the value of a script, which may be a promise.
func eval[T any](p *tab, script string) T {
	p.t.Helper()
	return value(p, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// until waits until a script is true.
func (p *tab) until(what, script string) {
	p.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if eval[bool](p, script) {
			return
		}
		require.True(p.t, time.Now().Before(end), "%s: never %s", what, script)
	}
}

func (p *tab) shot(name string) {
	p.t.Helper()
	png := value(p, chromedp.FullScreenshot(100))
	require.NoError(p.t, os.WriteFile(filepath.Join(build, name+".png"), png, 0o644))
}

type violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML           string
		FailureSummary string
	}
}

// axe returns axe-core's findings, by all rules except experimental ones.
func (p *tab) axe() []violation {
	p.t.Helper()
	eval[bool](p, `typeof axe === "object" || (() => {`+world.axe+`})() || true`)
	return eval[[]violation](p, `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations)`)
}

// focusable are the elements that a keyboard should reach, in order.
const focusable = `Array.from(document.querySelectorAll(
	'a[href], button, input, select, textarea, summary, [tabindex="0"]')).filter(e =>
	!e.disabled && e.type !== "hidden" && e.checkVisibility({checkVisibilityCSS: true}))`

// focus is an element that the keyboard reached. Seen reports whether its focus is visible.
type focus struct {
	Name string
	Seen bool
}

// keyboard walks through a page by Tab, from its start until it leaves the page. It returns the
// elements that it reached, and those that it should reach.
func (p *tab) keyboard() (got []focus, want []string) {
	p.t.Helper()
	const name = `(e => e.tagName + " " + (e.getAttribute("href") || e.getAttribute("aria-label") || e.id || e.textContent.trim()))`
	want = eval[[]string](p, focusable+`.map(`+name+`)`)
	for range len(want) + 5 {
		p.do(chromedp.KeyEvent("\t"))
		now := eval[*focus](p, `(e => { const s = getComputedStyle(e), r = e.getBoundingClientRect();
			return e === document.body ? null : {Name: `+name+`(e),
			Seen: (s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 1 || s.boxShadow !== "none") &&
				r.right > 0 && r.bottom > 0 && r.left < innerWidth && r.top < innerHeight}})(document.activeElement)`)
		if now == nil {
			break
		}
		got = append(got, *now)
	}
	return got, want
}

// source returns the page as the browser has it, for pages without scripts.
func (p *tab) source() string {
	p.t.Helper()
	return value(p, chromedp.OuterHTML(chromedp.CSS("html")))
}

// measure describes the pixels of a canvas: their hash, the part drawn, and the number of colours.
type measure struct {
	Hash    int64
	Drawn   float64
	Colours int
}

// canMeasure lets scripts measure a canvas. They read a copy, because reading slows down the
// original.
func (p *tab) canMeasure() {
	p.t.Helper()
	eval[bool](p, `function measure(canvas) {
		const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
		copy.drawImage(canvas, 0, 0);
		const dots = new Uint32Array(copy.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
		let hash = 0, drawn = 0;
		for (const dot of dots) {
			hash = Math.imul(hash ^ dot, 16777619);
			if (dot !== 0) drawn++;
		}
		return {Hash: hash, Drawn: drawn / dots.length, Colours: new Set(dots).size};
	}; true`)
}

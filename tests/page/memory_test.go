package page

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
)

const (
	isLive = `document.querySelector("#state").classList.contains("live")`
	moment = `document.querySelector("main").dataset.moment`
)

// openMemory opens the page of the budget, and waits until its figures arrive as events.
func openMemory(t *testing.T) *tab {
	t.Helper()
	inPlay(t)
	p := open(t, "/", forms[0])
	p.until("events come", isLive)
	return p
}

// The budget's page holds in each form, while its figures move.
func TestMemory(t *testing.T) {
	p := openMemory(t)
	for _, f := range forms {
		p.see(f)
		before := eval[string](p, moment)
		p.until("the figures move", moment+` !== "`+before+`"`)
		p.hold("memory", f)
	}
	p.clean()
}

// said are the figures of a part or an arena on the page, in bytes. A part of several arenas has
// the sum of their bytes, and the other figures of its fullest.
type said struct{ Together, Used, Peak, Planned uint64 }

// The page's figures are those of report.json, to the byte, before and after the report is made.
func TestMemorySaysWhatIs(t *testing.T) {
	p := openMemory(t)
	got := eval[struct {
		Report string
		Shown  map[string]map[string]said
	}](p, `(async () => {
		const main = document.querySelector("main");
		const next = async () => {
			const last = main.dataset.moment;
			while (main.dataset.moment === last) await new Promise(done => setTimeout(done, 5));
		};
		const ask = async () => (await fetch("report.json")).text();
		const slots = text => JSON.stringify(JSON.parse(text).arenas.filter(a => a.kind === "region" || a.kind === "slot"));
		for (;;) {
			const report = await ask();
			await next();
			await next(); // this one was made after the report
			const shown = {};
			for (const part of main.querySelectorAll('article[id^="part-"]')) {
				const rows = shown[part.id.slice(5)] = {};
				for (const row of part.querySelectorAll("tbody tr")) {
					const numbers = Array.from(row.querySelectorAll("data"), d => Number(d.value));
					const [planned, peak, used, together] = numbers.reverse();
					rows[row.querySelector("th").textContent] = {Together: together ?? 0, Used: used, Peak: peak, Planned: planned};
				}
			}
			if (slots(await ask()) === slots(report)) return {Report: report, Shown: shown};
		}
	})()`)
	var report budget.Report
	require.NoError(t, json.Unmarshal([]byte(got.Report), &report))
	arenas := 0
	for _, part := range report.Parts() {
		if part.Kind != "region" && part.Kind != "slot" {
			continue
		}
		shown := got.Shown[part.Name]
		want := said{0, part.Value("arena_used"), part.Value("arena_peak"), part.Value("arena_size")}
		if len(part.Arenas) > 1 {
			want.Together = part.Value("used")
		}
		assert.Equal(t, want, shown[part.Name], part.Name)
		for _, a := range part.Arenas {
			if row, there := shown[a.Name]; there {
				assert.Equal(t, said{0, a.Used, a.Peak, a.Size}, row, a.Name)
				arenas++
			}
		}
	}
	assert.Greater(t, arenas, len(report.Parts()), "slots too")
	assert.Positive(t, got.Shown["level"]["level"].Used)
	p.clean()
}

// The picture of the timeline is drawn, and replaced by a newer one.
func TestTimelineMoves(t *testing.T) {
	p := openMemory(t)
	const picture = `document.querySelector("#time img")`
	eval[bool](p, `(`+picture+`.scrollIntoView(), true)`)
	p.until("it is drawn", picture+`.complete && `+picture+`.naturalWidth > 0`)
	before := eval[string](p, picture+`.src`)
	p.until("it is a newer one", picture+`.src !== "`+before+`" && `+picture+`.complete && `+picture+
		`.naturalWidth > 0`)
	p.clean()
}

// Without JavaScript, the page has the figures, the map, and the timeline as a picture.
func TestMemoryWithoutScripts(t *testing.T) {
	inPlay(t)
	for _, f := range []form{{1440, "light", true}, {390, "dark", true}} {
		p := open(t, "/", f)
		for _, what := range []string{"#map img", "#time img", "#part-level data"} {
			box := value(p, chromedp.Dimensions(chromedp.CSS(what)))
			assert.Positive(t, box.Width*box.Height, fmt.Sprintf("%s: %v", what, box))
		}
		p.shot("memory-" + f.String())
		p.clean()
	}
}

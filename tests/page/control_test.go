package page

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The tests' checks find faults that are put on a page.
func TestWhatIsLookedForIsFound(t *testing.T) {
	inPlay(t)
	p := open(t, "/rooms/", forms[0])
	eval[bool](p, `(() => {
		const main = document.querySelector("main"), style = document.styleSheets[0];
		main.append(Object.assign(document.createElement("img"), {src: "../rooms/icon.svg"}),
			Object.assign(document.createElement("input"), {id: "unnamed"}),
			Object.assign(document.createElement("p"), {id: "pale", textContent: "pale"}),
			Object.assign(document.createElement("a"), {id: "unseen", href: "../", textContent: "unseen"}));
		style.insertRule("#pale { color: #dddddd; background: #ffffff }");
		style.insertRule("#unseen:focus-visible { outline: none }");
		document.getElementById("unseen").after(Object.assign(document.createElement("a"),
			{id: "jumps", href: "../rooms/", textContent: "jumps", tabIndex: 1}));
		console.error("spoilt");
		fetch("nowhere").catch(() => {});
		setTimeout(() => { throw new Error("spoilt"); });
		return true;
	})()`)
	rules := map[string]bool{}
	for _, v := range p.axe() {
		rules[v.ID] = true
	}
	assert.Subset(t, rules, map[string]bool{"image-alt": true, "label": true, "color-contrast": true})
	got, want := p.keyboard()
	seen := map[string]bool{}
	for _, g := range got {
		seen[g.Name] = g.Seen
	}
	assert.Equal(t, want[0], "A #content")
	assert.NotEqual(t, want[0], got[0].Name, "one is out of its order")
	assert.False(t, seen["A ../"], "one doesn't show the focus")
	p.until("faults are heard", `new Promise(done => setTimeout(() => done(true), 100))`)
	for _, what := range []string{"console: error", "404: ", "exception: "} {
		assert.Eventually(t, func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return strings.Contains(strings.Join(p.faults, "\n"), what)
		}, 5*time.Second, 20*time.Millisecond, what)
	}
}

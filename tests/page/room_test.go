package page

import (
	"regexp"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Room 0 has 16 players, room 1 has 8, and the others none.
const busy, resting = "/room/0", "/room/5"

// inPlay waits until bots play in room 0.
func inPlay(t *testing.T) {
	t.Helper()
	begin(t)
	p := open(t, "/rooms/", forms[0])
	p.until("bots play", `Number(document.querySelector('tr[data-room="1"]')?.cells[2].textContent) === 8`)
}

// Each page holds, at both widths and in both schemes: an empty console, no requests elsewhere, and
// no finding of axe-core or the keyboard. The page stays while its form changes.
func TestRooms(t *testing.T) {
	inPlay(t)
	for name, path := range map[string]string{"rooms": "/rooms/", "room": busy, "resting": resting} {
		t.Run(name, func(t *testing.T) {
			p := open(t, path, forms[0])
			if name != "rooms" {
				p.until("a canvas", `!document.getElementById("canvas").hidden`)
			}
			for _, f := range forms {
				p.see(f)
				if name != "resting" {
					moves(p)
				}
				p.hold(name, f)
			}
			p.clean()
		})
	}
}

func moves(p *tab) {
	p.t.Helper()
	const tick = `(document.getElementById("tick") || document.querySelector("tr[data-room]").cells[3]).textContent`
	before := eval[string](p, tick)
	p.until("the tick moves", tick+` !== "`+before+`"`)
}

// A room's page shows the figures of the event of the same tick.
func TestRoomSaysWhatIs(t *testing.T) {
	inPlay(t)
	p := open(t, busy, forms[0])
	p.until("a canvas", `!document.getElementById("canvas").hidden`)
	said := eval[struct{ Event, Page []string }](p, `new Promise(done => {
		const page = document.getElementById("content"), events = new EventSource("0/events");
		const text = id => document.getElementById(id).textContent;
		events.onmessage = message => {
			const event = JSON.parse(message.data);
			setTimeout(() => {
				if (page.dataset.tick !== String(event.tick)) return; // the next has come already
				events.close();
				done({
					Event: [event.map, event.tick, event.players.length, event.frogs.length, event.sectors.length,
						...event.players.flatMap(p => [p.number, p.name, p.health, p.caught, p.deaths, p.exits])].map(String),
					Page: [text("map"), text("tick"), text("players"), text("frogs"), text("sectors"),
						...Array.from(document.querySelectorAll("#list th, #list td"), c => c.textContent)],
				});
			}, 30);
		};
	})`)
	require.Len(t, said.Event, 5+16*6)
	assert.Equal(t, said.Event, said.Page)
	p.clean()
}

// The canvas has the map's colours, and changes while bots play.
func TestCanvas(t *testing.T) {
	inPlay(t)
	p := open(t, busy, forms[0])
	p.until("a canvas", `!document.getElementById("canvas").hidden`)
	p.canMeasure()
	const look = `measure(document.getElementById("canvas"))`
	p.until("lines are drawn", look+`.Colours > 20`)
	now := eval[measure](p, look)
	assert.Greater(t, now.Drawn, 0.005)
	assert.Less(t, now.Drawn, 0.5)
	hashes := map[int64]bool{}
	for end := time.Now().Add(patience); len(hashes) < 4 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		hashes[eval[measure](p, look).Hash] = true
	}
	assert.Len(t, hashes, 4, "it moves")
	p.clean()
}

// Without JavaScript, the page has the figures of a moment, and a picture.
func TestRoomWithoutScripts(t *testing.T) {
	inPlay(t)
	for _, f := range []form{{1440, "light", true}, {390, "dark", true}} {
		p := open(t, busy, f)
		html := p.source()
		assert.Len(t, regexp.MustCompile(`<tr data-player=`).FindAllString(html, -1), 16)
		assert.NotEmpty(t, regexp.MustCompile(`id="tick">[1-9]\d*<`).FindString(html))
		assert.Greater(t, len(regexp.MustCompile(`<path class="line `).FindAllString(html, -1)), 5)
		for _, what := range []string{"#still .wall", "#still .player", "#still .frog"} {
			p.do(chromedp.WaitReady(chromedp.CSS(what)))
		}
		p.shot("room-" + f.String())
		list := open(t, "/rooms/", f)
		assert.Len(t, regexp.MustCompile(`<tr data-room=`).FindAllString(list.source(), -1), 6)
		p.clean()
		list.clean()
	}
}

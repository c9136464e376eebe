package web

import (
	"embed"
	"fmt"
	"html"
	"net/http"
	"strconv"
	"strings"
)

//go:embed assets
var assets embed.FS

// routes returns all routes. Links in the pages are relative.
func (h *Hub) routes() *http.ServeMux {
	m := http.NewServeMux()
	m.HandleFunc("/rooms/{$}", h.listPage)
	m.Handle("/rooms/events", h.list.feed)
	m.HandleFunc("/rooms/room.css", asset("room.css", "text/css; charset=utf-8"))
	m.HandleFunc("/rooms/room.js", asset("room.js", "text/javascript; charset=utf-8"))
	m.HandleFunc("/rooms/icon.svg", asset("icon.svg", "image/svg+xml"))
	m.HandleFunc("/room/{room}", h.ofRoom(h.roomPage))
	m.HandleFunc("/room/{room}/events", h.ofRoom(func(w http.ResponseWriter, r *http.Request, room int) {
		h.rooms[room].feed.ServeHTTP(w, r)
	}))
	m.HandleFunc("/map/{map}", h.chart)
	return m
}

func asset(name, kind string) http.HandlerFunc {
	text := []byte(file(name))
	return func(w http.ResponseWriter, _ *http.Request) { answer(w, kind, text) }
}

func file(name string) string {
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // embedded
	}
	return string(text)
}

func answer(w http.ResponseWriter, kind string, text []byte) {
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(text) // an error means that the viewer is gone
}

// ofRoom returns a handler that parses the number of a room, and calls serve with it.
func (h *Hub) ofRoom(serve func(http.ResponseWriter, *http.Request, int)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text := r.PathValue("room")
		room, err := strconv.Atoi(text)
		if err != nil || room < 0 || room >= len(h.rooms) || text != strconv.Itoa(room) {
			http.Error(w, fmt.Sprintf("no such room: they are 0 to %d", len(h.rooms)-1), http.StatusNotFound)
			return
		}
		serve(w, r, room)
	}
}

// chart answers with the lines of a map, which don't change while the server runs.
func (h *Hub) chart(w http.ResponseWriter, r *http.Request) {
	name, isJSON := strings.CutSuffix(r.PathValue("map"), ".json")
	if !isJSON || !h.charts.has(name) {
		http.NotFound(w, r)
		return
	}
	c, err := h.charts.get(name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	answer(w, "application/json", c.text)
}

// The pages have names in braces in place of their values. Package html/template would make the
// linker keep every method in the program, which is 11 MB.
var listForm, roomForm = file("rooms.html"), file("room.html")

// fill writes the page form, with names replaced by values. parts are names and values in turn;
// values are HTML.
func fill(w http.ResponseWriter, form string, parts ...string) {
	answer(w, "text/html; charset=utf-8", []byte(strings.NewReplacer(parts...).Replace(form)))
}

func (h *Hub) listPage(w http.ResponseWriter, _ *http.Request) {
	var rows strings.Builder
	for _, b := range h.list.look() {
		fmt.Fprintf(&rows, `<tr data-room="%d"><th scope="row"><a href="../room/%d">Room %d</a></th><td>%s</td>`,
			b.Room, b.Room, b.Room, html.EscapeString(b.Map))
		numbers(&rows, strconv.Itoa(b.Players), decimal(b.Tick), clock(b.Tick))
	}
	fill(w, listForm, "{places}", strconv.Itoa(h.source.Places()), "{rows}", rows.String())
}

// numbers writes cells with numbers, and ends the row.
func numbers(to *strings.Builder, list ...string) {
	for _, text := range list {
		fmt.Fprintf(to, `<td class="number">%s</td>`, text)
	}
	to.WriteString("</tr>\n")
}

func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// roomPage serves a room as it is now. Without JavaScript the page doesn't change.
func (h *Hub) roomPage(w http.ResponseWriter, _ *http.Request, room int) {
	scene := h.rooms[room].look()
	if scene == nil {
		scene = &Scene{Room: room, Whole: true}
	}
	title, sectors, still := "none yet", strconv.Itoa(len(scene.Sectors)), ""
	if scene.Map != "" {
		title = html.EscapeString(scene.Map)
	}
	if !scene.Whole {
		sectors += " or more"
	}
	if c, err := h.charts.get(scene.Map); err == nil {
		still = picture(c.Chart, scene)
	}
	fill(w, roomForm, "{room}", strconv.Itoa(room), "{map}", html.EscapeString(scene.Map), "{title}", title,
		"{number}", decimal(scene.Number), "{tick}", decimal(scene.Tick), "{time}", clock(scene.Tick),
		"{players}", strconv.Itoa(len(scene.Players)), "{frogs}", strconv.Itoa(len(scene.Frogs)),
		"{sectors}", sectors, "{picture}", still, "{legend}", legend(), "{rows}", standings(scene.Players),
		"{links}", h.links(room))
}

func standings(list []Player) string {
	if len(list) == 0 {
		return `<tr><td colspan="6" class="quiet">No players: the room rests.</td></tr>` + "\n"
	}
	var rows strings.Builder
	for i := range list {
		p := &list[i]
		fmt.Fprintf(&rows, `<tr data-player="%d"><th scope="row">%d</th><td>%s</td>`, p.Number, p.Number,
			html.EscapeString(p.Name))
		numbers(&rows, strconv.Itoa(int(p.Health)), decimal(p.Caught), decimal(p.Deaths), decimal(p.Exits))
	}
	return rows.String()
}

func (h *Hub) links(here int) string {
	var text strings.Builder
	for i := range h.rooms {
		current := ""
		if i == here {
			current = ` aria-current="page"`
		}
		fmt.Fprintf(&text, `<a href="../room/%d"%s>%d</a>`+"\n", i, current, i)
	}
	return text.String()
}

// clock returns the time of a tick as minutes and seconds.
func clock(tick uint32) string {
	seconds := tick / ticksPerSecond
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

const ticksPerSecond = 35

var meanings = []struct{ class, what string }{
	{"wall", "wall"},
	{"step", "step"},
	{"ceiling", "ceiling step"},
	{"special", "switch, exit, teleporter"},
	{"door", "door, shut"},
	{"ajar", "door, open"},
	{"moved", "moved since the start"},
}

// legend explains the marks and lines of a picture.
func legend() string {
	var text strings.Builder
	item := func(mark, what string) {
		fmt.Fprintf(&text, `<li><svg viewBox="0 0 24 12" width="24" height="12" aria-hidden="true">%s</svg>%s</li>`+
			"\n", mark, what)
	}
	item(`<path class="player" d="M19 6L6 11L9 6L6 1Z"/>`, "player, with its number")
	item(`<circle class="frog" cx="12" cy="6" r="4"/>`, "frog")
	for _, m := range meanings {
		item(`<path class="line `+m.class+`" d="M1 6H23"/>`, m.what)
	}
	return text.String()
}

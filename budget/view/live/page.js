"use strict";
(() => {
  const main = document.querySelector("main");
  const state = document.querySelector("#state");
  const slow = 5000; // milliseconds, where the server has no place for another stream

  // patch makes a part of the page what a fresh one is. What is the same stays: focus, selection, what is scrolled.
  function patch(old, fresh) {
    if (old.nodeType === Node.TEXT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE || old.hasAttribute("data-keep")) return;
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    const had = [...old.childNodes];
    const has = [...fresh.childNodes];
    has.forEach((child, i) => {
      if (!had[i]) old.append(child);
      else if (had[i].nodeName !== child.nodeName) had[i].replaceWith(child);
      else patch(had[i], child);
    });
    had.slice(has.length).forEach((child) => child.remove());
  }

  function show(text) {
    const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("main");
    if (fresh) {
      patch(main, fresh);
      shown.forEach((follow) => follow());
    }
    return fresh !== null;
  }

  // What is too large to come with each event is fetched after one, now and then.
  const shown = [];

  function nowAndThen(fetchIt) {
    let last = 0;
    shown.push(() => {
      if (Date.now() - last < 2000) return;
      last = Date.now();
      fetchIt();
    });
  }

  const picture = document.querySelector("#picture");
  nowAndThen(() => {
    const image = picture.querySelector("img");
    if (picture.open && image.complete) image.src = `map.svg?${main.dataset.moment}`;
  });

  function say(text, live) {
    if (state.textContent !== text) state.textContent = text;
    state.classList.toggle("live", live);
  }

  // Figures come as events; where these are refused, the page is asked for now and then.
  let events = null;
  let again = 0;

  function look() {
    rest();
    events = new EventSource("events");
    events.onmessage = (e) => show(e.data) && say("live", true);
    events.onerror = () => {
      if (events.readyState !== EventSource.CLOSED) {
        say("the server doesn't answer: trying again", false);
        return;
      }
      rest();
      ask();
    };
  }

  async function ask() {
    const mine = setTimeout(look, slow);
    again = mine;
    try {
      const answer = await fetch("./");
      if (again === mine && answer.ok && show(await answer.text())) say("newer figures every 5 seconds", true);
    } catch {
      say("the server doesn't answer: trying again", false);
    }
  }

  function rest() {
    events?.close();
    clearTimeout(again);
    events = null;
    again = 0;
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      rest();
      say("paused", false);
    } else {
      look();
    }
  });
  if (!document.hidden) look();

  // The chart of one part over time.
  const chart = document.querySelector("#chart");
  if (!chart || !window.uPlot) return;
  const choice = document.createElement("select");
  const label = document.createElement("label");
  label.append("Part ", choice);
  const place = document.createElement("div");
  const note = document.createElement("p");
  chart.append(label, place, note);

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const markFull = 4; // of a budget.Mark
  const powers = Array.from({ length: 32 }, (_, i) => 64 * 2 ** i);
  let plot = null;
  let data = null;
  let summary = "";

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const grouped = (n) => n.toLocaleString("en");
  const kib = (bytes) => `${bytes < 102400 ? Math.ceil(bytes / 102.4) / 10 : Math.ceil(bytes / 1024)}KiB`; // as all sizes

  // lines are what there is to choose from: of several arenas, the fullest, or all.
  function lines() {
    return data.parts.flatMap((p) => {
      if (p.arenas === 1) return [{ name: p.name, most: p.fullest, size: p.size, marks: p.marks }];
      return [
        { name: `${p.name}: the fullest of ${p.arenas}`, most: p.fullest, size: p.size, marks: p.marks },
        { name: `${p.name}: all ${p.arenas}, at most`, most: p.all, size: p.whole, marks: p.marks },
      ];
    });
  }

  function draw() {
    if (!data) return;
    const all = lines();
    const names = all.map((l) => l.name);
    if ([...choice.options].map((o) => o.text).join() !== names.join()) {
      const chosen = choice.selectedIndex;
      choice.replaceChildren(...names.map((name) => new Option(name)));
      choice.selectedIndex = Math.max(0, Math.min(chosen, names.length - 1));
    }
    const line = all[choice.selectedIndex];
    if (!line) return;
    const ticks = line.most.map((_, i) => i * data.step);
    const full = line.most.map((most, i) => (line.marks[i] & markFull ? most : null));
    const size = line.most.map(() => line.size);
    plot ??= make();
    plot.setData([ticks, size, line.most, full]);
    const most = line.most.reduce((a, b) => Math.max(a, b), 0);
    const fulls = full.filter((f) => f !== null).length;
    summary = `${grouped(data.ticks)} ticks, ${grouped(data.step)} in a sample: at most ${kib(most)} of ${kib(line.size)}, ` +
      (fulls ? `full in ${grouped(fulls)} samples` : "never full");
    tell(plot.cursor.idx);
  }

  // tell says what the pointer is at, or what there is in all.
  function tell(at) {
    note.textContent = at == null || !plot.data[0].length ? summary
      : `tick ${grouped(plot.data[0][at])}: ${kib(plot.data[2][at])}${plot.data[3][at] === null ? "" : ", full"}`;
  }

  function make() {
    const line = { stroke: colour("--edge"), width: 1 };
    const axis = { stroke: colour("--quiet"), grid: line, ticks: line };
    return new uPlot({
      width: place.clientWidth,
      height: 260,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false } },
      hooks: { setCursor: [(u) => tell(u.cursor.idx)] },
      scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(high, 1) * 1.05] } },
      axes: [
        { ...axis, label: "ticks", labelFont: "13px system-ui" },
        { ...axis, size: 84, incrs: powers, values: (_, at) => at.map(kib) },
      ],
      series: [
        {},
        { stroke: colour("--quiet"), dash: [4, 4], points: { show: false } },
        { stroke: colour("--used"), fill: `${colour("--used")}33`, width: 2, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } },
        { stroke: colour("--bad"), paths: () => null, points: { show: true, size: 8, fill: colour("--bad") } },
      ],
    }, null, place);
  }

  function anew() {
    plot?.destroy();
    plot = null;
    draw();
  }

  nowAndThen(async () => {
    try {
      const answer = await fetch("chart.json");
      if (!answer.ok) return;
      data = await answer.json();
      draw();
    } catch {
      // the state of the page says it
    }
  });

  choice.addEventListener("change", draw);
  dark.addEventListener("change", anew);
  new ResizeObserver(() => plot?.setSize({ width: place.clientWidth, height: 260 })).observe(place);
})();

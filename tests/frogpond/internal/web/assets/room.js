"use strict";

// A room's page draws the newest scene on a canvas, and the list's page updates its figures. Without
// this script the server's text and picture stay.

const ticksPerSecond = 35;
const kinds = ["plain", "ceiling", "step", "wall", "special", "door"]; // by the numbers of a chart's lines
const order = ["plain", "ceiling", "step", "wall", "moved", "special", "ajar", "door"]; // the last is on top
const widths = { wall: 1.5, moved: 1.5, special: 2, ajar: 2, door: 2.5 };
const margin = 64; // units around a map

const find = id => document.getElementById(id);
const main = find("content");

function set(id, text) {
  const at = find(id);
  if (at.textContent !== String(text)) at.textContent = text;
}

function clock(tick) {
  const seconds = Math.floor(tick / ticksPerSecond);
  return Math.floor(seconds / 60) + ":" + String(seconds % 60).padStart(2, "0");
}

// say shows how recent the page is.
function say(text, live) {
  set("state", text);
  find("state").classList.toggle("live", live);
}

// row makes a row of a table: the first cell is its head.
function row(cells, numbers) {
  const tr = document.createElement("tr");
  cells.forEach((text, i) => {
    const cell = document.createElement(i === 0 ? "th" : "td");
    if (i === 0) cell.scope = "row";
    if (numbers.includes(i)) cell.className = "number";
    cell.textContent = text;
    tr.append(cell);
  });
  return tr;
}

// follow calls heard with each event, while the page is visible.
function follow(url, heard) {
  let events = null;
  const start = () => {
    if (document.hidden === (events === null)) return;
    if (document.hidden) {
      events.close();
      events = null;
      return;
    }
    events = new EventSource(url);
    events.onmessage = event => {
      say("live", true);
      heard(JSON.parse(event.data));
    };
    events.onerror = () => {
      say("no word from the server: the figures may be old", false);
      if (events.readyState === EventSource.CLOSED) { // refused: too many viewers
        events = null;
        setTimeout(start, 5000);
      }
    };
  };
  document.addEventListener("visibilitychange", start);
  start();
}

// --- the list

function showList(list) {
  const known = new Map(Array.from(document.querySelectorAll("tr[data-room]"), tr => [Number(tr.dataset.room), tr]));
  if (list.some(room => !known.has(room.room))) {
    location.reload(); // the page is from before the server had rooms
    return;
  }
  for (const room of list) {
    const cells = known.get(room.room).cells;
    [room.map, room.players, room.tick, clock(room.tick)].forEach((text, i) => {
      if (cells[i + 1].textContent !== String(text)) cells[i + 1].textContent = text;
    });
  }
}

// --- a room

let chart = null, scene = null, asked = "", drawing = false;

function showRoom(next) {
  if (next === null) return; // the room didn't answer
  scene = next;
  draws();
  if (scene.map !== "" && scene.map !== asked) loadChart(scene.map);
}

async function loadChart(map) {
  asked = map;
  try {
    const answer = await fetch("../map/" + encodeURIComponent(map) + ".json");
    if (!answer.ok) throw new Error(answer.status);
    chart = await answer.json();
    find("canvas").hidden = false;
    find("still")?.remove();
    draws();
  } catch {
    setTimeout(() => { asked = ""; }, 2000); // a later scene asks again
  }
}

// draws schedules a drawing of the newest scene for the next frame.
function draws() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    if (scene !== null) figures();
    if (scene !== null && chart !== null) draw();
  });
}

function figures() {
  Object.assign(main.dataset, { map: scene.map, number: scene.number, tick: scene.tick });
  set("map", scene.map || "none yet");
  set("time", clock(scene.tick));
  set("tick", scene.tick);
  set("players", scene.players.length);
  set("frogs", scene.frogs.length);
  set("sectors", scene.sectors.length + (scene.whole ? "" : " or more"));
  const rows = scene.players.map(p => {
    const tr = row([p.number, p.name, p.health, p.caught, p.deaths, p.exits], [2, 3, 4, 5]);
    tr.dataset.player = p.number;
    return tr;
  });
  if (rows.length === 0) {
    const tr = document.createElement("tr"), cell = document.createElement("td");
    cell.colSpan = 6;
    cell.className = "quiet";
    cell.textContent = "No players: the room rests.";
    tr.append(cell);
    rows.push(tr);
  }
  find("list").replaceChildren(...rows);
}

function draw() {
  const canvas = find("canvas"), dots = window.devicePixelRatio || 1;
  const [minX, minY, maxX, maxY] = chart.box;
  canvas.style.aspectRatio = (maxX - minX + 2 * margin) + " / " + (maxY - minY + 2 * margin);
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (width === 0 || height === 0) return;
  canvas.width = Math.round(width * dots);
  canvas.height = Math.round(height * dots);
  const style = getComputedStyle(document.documentElement);
  const colour = name => style.getPropertyValue("--" + name);
  const c = canvas.getContext("2d");
  c.scale(dots, dots);
  const scale = Math.min(width / (maxX - minX + 2 * margin), height / (maxY - minY + 2 * margin));
  const x = unit => width / 2 + (unit - (minX + maxX) / 2) * scale;
  const y = unit => height / 2 - (unit - (minY + maxY) / 2) * scale; // north is up

  drawLines(c, x, y, colour);
  c.fillStyle = colour("frog");
  for (const frog of scene.frogs) {
    c.beginPath();
    c.arc(x(frog[0]), y(frog[1]), 2.5, 0, 2 * Math.PI);
    c.fill();
  }
  for (const player of scene.players) drawPlayer(c, x(player.x), y(player.y), player, colour);
  canvas.setAttribute("aria-label", "Map " + scene.map + ": " + scene.players.length + " players, " +
    scene.frogs.length + " frogs, " + scene.sectors.length + " sectors moved");
}

function drawLines(c, x, y, colour) {
  const now = chart.sectors.slice(), moved = new Set();
  for (const [number, floor, ceiling] of scene.sectors) {
    now[number] = [floor, ceiling];
    moved.add(number);
  }
  const paths = new Map(order.map(name => [name, new Path2D()]));
  for (const line of chart.lines) {
    const path = paths.get(classOf(line, now, moved));
    path.moveTo(x(line[0]), y(line[1]));
    path.lineTo(x(line[2]), y(line[3]));
  }
  for (const [name, path] of paths) {
    c.strokeStyle = colour(name);
    c.lineWidth = widths[name] || 1;
    c.setLineDash(name === "ajar" ? [3, 3] : []);
    c.stroke(path);
  }
  c.setLineDash([]);
}

// classOf returns the class of a line now. A door is open if there is a gap between its sides.
function classOf([, , , , kind, front, back], now, moved) {
  if (kinds[kind] === "door") {
    const room = Math.min(now[front][1], now[back][1]) - Math.max(now[front][0], now[back][0]);
    return room > 0 ? "ajar" : "door";
  }
  return back >= 0 && (moved.has(front) || moved.has(back)) ? "moved" : kinds[kind];
}

// drawPlayer draws an arrow along the heading, and the number next to it.
function drawPlayer(c, x, y, player, colour) {
  c.save();
  c.translate(x, y);
  c.save();
  c.rotate(-player.heading * Math.PI / 8);
  c.beginPath();
  c.moveTo(9, 0);
  c.lineTo(-6, 5.5);
  c.lineTo(-3, 0);
  c.lineTo(-6, -5.5);
  c.closePath();
  c.fillStyle = colour("player");
  c.strokeStyle = colour("ground");
  c.lineWidth = 3;
  c.lineJoin = "round";
  c.stroke();
  c.fill();
  c.restore();
  c.font = "600 11px ui-sans-serif, system-ui, sans-serif";
  c.lineWidth = 3;
  c.strokeStyle = colour("ground");
  c.fillStyle = colour("player");
  c.strokeText(player.number, 9, -7);
  c.fillText(player.number, 9, -7);
  c.restore();
}

if (main.dataset.list) {
  follow(main.dataset.list, showList);
} else {
  follow(main.dataset.room + "/events", showRoom);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draws);
  addEventListener("resize", draws);
}

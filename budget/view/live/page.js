"use strict";
(() => {
  const main = document.querySelector("main");
  const state = document.querySelector("#state");
  const slow = 5000; // milliseconds between polls, if the server has no free stream

  // patch makes a part of the page equal to a fresh one. Equal nodes stay, with their focus,
  // selection and scroll position.
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
      renew();
    }
    return fresh !== null;
  }

  // A picture is too large for each event: a visible one is fetched after it, at most every two
  // seconds.
  let renewed = 0;

  function renew() {
    if (Date.now() - renewed < 2000) return;
    renewed = Date.now();
    for (const image of document.querySelectorAll(".picture img")) {
      if (image.complete && image.checkVisibility()) image.src = `${image.src.split("?")[0]}?${main.dataset.moment}`;
    }
  }

  function say(text, live) {
    if (state.textContent !== text) state.textContent = text;
    state.classList.toggle("live", live);
  }

  // Metrics come as events. If the server refuses these, the page polls.
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
      if (again === mine && answer.ok && show(await answer.text())) say("newer metrics every 5 seconds", true);
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
})();

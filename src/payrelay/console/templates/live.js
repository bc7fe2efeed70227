// Keeps a page up to date: takes the parts that have changed from the page's stream. The page works without it, too.
"use strict";
(() => {
  const state = document.getElementById("live-state");
  if (!state || !window.EventSource) return;
  const known = new Map([...document.querySelectorAll(".live")].map((part) => [part.id, part.innerHTML]));
  let source = null;
  let again = 0;

  const say = (text) => { if (state.textContent !== text) state.textContent = text; };
  const nameOf = (element) => element.tagName + "|" + (element.getAttribute("href") || element.textContent);

  // Names each by its text, and those with one text by their order.
  function named(part) {
    const counts = new Map();
    return [...part.querySelectorAll("details > summary")].map((each) => {
      const count = (counts.get(each.textContent) || 0) + 1;
      counts.set(each.textContent, count);
      return [each.textContent + "|" + count, each];
    });
  }

  function show(id, html) {
    const part = document.getElementById(id);
    const made = document.createElement("template");
    made.innerHTML = html;
    if (!part || known.get(id) === made.innerHTML) return false;
    known.set(id, made.innerHTML);
    const before = named(part);
    const open = new Set(before.filter(([, each]) => each.parentElement.open).map(([name]) => name));
    const entered = before.find(([, each]) => each === document.activeElement);
    const focused = part.contains(document.activeElement) && !entered ? nameOf(document.activeElement) : null;
    part.replaceChildren(made.content);
    for (const [name, each] of named(part)) {
      each.parentElement.open = open.has(name);
      if (entered && entered[0] === name) each.focus({ preventScroll: true });
    }
    if (focused) {
      const same = [...part.querySelectorAll("a, [tabindex]")].find((each) => nameOf(each) === focused);
      if (same) same.focus({ preventScroll: true });
    }
    return true;
  }

  function stop() {
    clearTimeout(again);
    if (source) source.close();
    source = null;
  }

  function start() {
    stop();
    source = new EventSource("/console/live?page=" + encodeURIComponent(state.dataset.page));
    source.onopen = () => say("This page is live.");
    source.onmessage = (event) => {
      const parts = Object.entries(JSON.parse(event.data)).filter(([id, html]) => show(id, html));
      if (parts.length && state.dataset.tells) say("Changed at " + new Date().toLocaleTimeString() + ".");
    };
    source.addEventListener("over", () => { stop(); say("This page is not live any more. Load it again."); });
    source.addEventListener("full", () => { stop(); say("Too many pages are live. Load this one again to see changes."); });
    source.onerror = () => {
      say("This page is not live now. It tries again.");
      if (source && source.readyState === EventSource.CLOSED) again = setTimeout(start, 15000);
    };
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  window.addEventListener("pagehide", stop);
  if (!document.hidden) start();
})();

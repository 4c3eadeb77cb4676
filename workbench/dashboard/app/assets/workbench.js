// Connects the page to its session: where the reader goes is sent to the server, and what the server shows comes back.
//
// Three models of the document carry it, found by their names: `location` (the URL that is asked for, after the number of
// this turn; with the number of before, the page stays where its address changes), `shown` (what the server shows, with the turn that it answers) and `width` (wide or narrow). What people do
// on a page is for acts.js, by `said` and `told`. No other script runs.
"use strict";

const NARROW = 700;
const SLOW = 400;

const session = JSON.parse(document.getElementById("session").textContent);
const progress = document.getElementById("progress");
const here = () => location.pathname + location.search;
const width = () => (window.innerWidth < NARROW ? "narrow" : "wide");

let waiting = null;

// What is waited for is said once it takes long enough to notice.
const wait = () => {
  clearTimeout(waiting);
  document.body.dataset.state = "waiting";
  waiting = setTimeout(() => { progress.textContent = "Loading…"; progress.classList.add("shown"); }, SLOW);
};
const done = () => {
  clearTimeout(waiting);
  progress.textContent = "";
  progress.classList.remove("shown");
  document.body.dataset.state = "ready";
};
const lost = () => {
  clearTimeout(waiting);
  document.body.dataset.state = "lost";
  progress.textContent = "The connection to the server was lost. ";
  const again = document.createElement("a");
  again.href = here();
  // Past the connection that is gone.
  again.dataset.outside = "";
  again.textContent = "Load the page again";
  progress.append(again);
  progress.classList.add("shown", "fault");
};

// Components live in shadows of their own, which a selector does not enter.
const find = (selector, root = document) => {
  const found = root.querySelector(selector);
  if (found) return found;
  for (const element of root.querySelectorAll("*")) {
    const within = element.shadowRoot && find(selector, element.shadowRoot);
    if (within) return within;
  }
  return null;
};

// Where a link within the page leads may lie in another shadow, where the browser does not look for it.
const within = (event) => {
  const link = event.composedPath().find((node) => node instanceof Element && node.localName === "a");
  const href = link && link.getAttribute("href");
  const target = href && href.startsWith("#") && find(`#${CSS.escape(href.slice(1))}`);
  if (!target) return;
  event.preventDefault();
  if (!target.hasAttribute("tabindex")) target.setAttribute("tabindex", "-1");
  target.focus();
  target.scrollIntoView();
};

const followed = (event) => {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return null;
  const link = event.composedPath().find((node) => node instanceof Element && node.localName === "a");
  const href = link && link.getAttribute("href");
  if (!href || !href.startsWith("/") || link.hasAttribute("download") || link.hasAttribute("data-outside")) return null;
  return href;
};

const connect = (views) => {
  const doc = Bokeh.documents[0];
  const [asked, shown, wide] = ["location", "shown", "width"].map((name) => doc.get_model_by_name(name));
  const go = (url) => { if (url !== here()) history.pushState(null, "", url); ask(); };
  // The page stays as it is under another address: what is filled in there is in the address as well.
  const stay = (url) => { if (url === here()) return; history.replaceState(null, "", url); asked.value = `${turn} ${url}`; };
  const arrive = acts({ find, go, stay, lost, said: doc.get_model_by_name("said"), told: doc.get_model_by_name("told") });
  const atKeys = keys({ find, go });
  let place = null;
  let turn = 0;
  const ask = () => { wait(); turn += 1; asked.value = `${turn} ${here()}`; };
  const show = () => {
    const { url, title, place: now, turn: answered, moved, waiting: still, time } = JSON.parse(shown.value);
    // The reader has gone on since.
    if (answered !== turn) return;
    if (still) { wait(); return; }
    if (url.startsWith("/sign-in?")) { location.assign(`${url}&next=${encodeURIComponent(here())}`); return; }
    if (url !== here() && url.startsWith("/") && !url.startsWith("//")) {
      // A filter leads to another page of the history; defaults that were filled in belong to this one.
      if (moved) history.pushState(null, "", url); else history.replaceState(null, "", url);
    }
    document.title = `${title} · Decision Gate workbench`;
    document.body.dataset.shown = url;
    drawn(time, () => {
      // A reader who went to another place begins at its heading; one who changed a filter stays there.
      if (place !== null && place !== now) {
        window.scrollTo(0, 0);
        find("h1").focus();
      }
      place = now;
      done();
      arrive();
      atKeys();
    });
  };
  // Components draw what they are sent a moment after it came.
  let looking = null;
  const drawn = (time, then) => {
    clearTimeout(looking);
    const main = find("main");
    if (main && Number(main.dataset.time) === time) then();
    else looking = setTimeout(drawn, 5, time, then);
  };
  shown.properties.value.change.connect(show);
  document.addEventListener("click", (event) => {
    const href = followed(event);
    if (href === null) return;
    event.preventDefault();
    go(href);
  });
  document.addEventListener("click", within);
  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && find(".who details[open]");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  window.addEventListener("popstate", ask);
  window.addEventListener("resize", () => { if (wide.value !== width()) { wait(); wide.value = width(); } });
  document.addEventListener("click", (event) => {
    const button = event.composedPath().find((node) => node instanceof Element && node.dataset && node.dataset.theme);
    if (!button || button === document.documentElement) return;
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", document.documentElement.dataset.theme);
  });
  doc.on_event("connection_lost", lost);
  wide.value = width();
  ask();
};

wait();
Bokeh.embed.embed_items({}, [session], "").then(connect, lost);

// What people do on a page: buttons and forms that name an act, and the editor of a draft. What is done is sent to the
// server with a number, and its answer carries the same one: parts of the page, a sentence, or where to go.
"use strict";

const PAUSE = 50;

// eslint-disable-next-line no-unused-vars
const acts = ({ find, go, stay, lost, said, told }) => {
  let number = 0;
  // The last act that sent the draft's text: what an earlier one answered is about a text that is no more.
  let latest = 0;
  let open = null;
  let beside = null;
  let pausing = null;
  let giving = null;
  const asked = new Map();
  // The text that was answered last: how well cases test another one is not known.
  let measured = null;

  const send = (act, more = {}) => {
    number += 1;
    asked.set(number, { act, text: more.text });
    if (more.text !== undefined && act !== "complete") latest = number;
    // What the text began with is told once; from then on the server knows it.
    const draft = open ? { draft: open.draft, edition: open.edition, bare: !find("#part-rules tbody"), ...(open.known ? {} : { base: open.begun.text }) } : {};
    said.value = JSON.stringify({ n: number, act, ...draft, ...more });
    document.body.dataset.acting = number;
    return number;
  };

  const say = (text, fault) => {
    const place = find("#saved");
    if (!place) return;
    place.textContent = text;
    place.classList.toggle("fault", Boolean(fault));
  };

  // --- Parts of the page ---------------------------------------------------------------------------------------------

  // The element that has the focus, in whatever shadow it is.
  const focused = () => {
    let at = document.activeElement;
    while (at && at.shadowRoot && at.shadowRoot.activeElement) at = at.shadowRoot.activeElement;
    return at;
  };
  // What each part shows: what is there already is not drawn anew.
  const shown = new WeakMap();
  const put = (id, html) => {
    const part = find(`#part-${id}`);
    if (!part) return;
    if (shown.get(part) === html) { part.classList.remove("stale"); return; }
    shown.set(part, html);
    const left = leave(part);
    const opened = [...part.querySelectorAll("details")].map((each) => each.open);
    part.innerHTML = html;
    part.classList.remove("stale");
    part.querySelectorAll("details").forEach((each, place) => { if (opened[place]) each.open = true; });
    refocus(part, left);
  };
  // The table of rules: whole, or each row as HTML or as the place where it is now. While the text is not valid, the rules
  // of before stay, and cannot be changed: their places in the text are not known. (`inert` would do, but it costs a
  // restyle of all that a large table holds, at a keystroke.)
  const table = ({ html, rows }) => {
    const part = find("#part-rules");
    if (!part) return;
    const known = html !== undefined || rows !== undefined;
    if (html !== undefined) put("rules", html);
    // Of a page that was drawn anew meanwhile there is no table yet: the next answer brings it.
    if (rows !== undefined && part.querySelector("tbody")) arrange(part, rows);
    else if (rows !== undefined) send_text();
    const before = !known && part.querySelector("table") !== null;
    part.classList.toggle("stale", before);
    find("#rules-of-before").hidden = !before;
    // What hangs on a valid text is that of before as well.
    find("#beside-of-before").hidden = known;
    for (const id of ["explained", "findings", "held", "measured"]) find(`#part-${id}`)?.classList.toggle("of-before", !known);
  };
  const arrange = (part, rows) => {
    shown.delete(part);
    const body = part.querySelector("tbody");
    const had = [...body.children];
    const left = leave(part);
    const made = document.createElement("template");
    const all = rows.map((each) => {
      if (typeof each === "number") return had[each];
      made.innerHTML = each;
      return made.content.firstElementChild;
    });
    const stay = all.length === had.length && rows.every((each, place) => typeof each !== "number" || each === place);
    if (stay) all.forEach((row, place) => { if (row !== had[place]) had[place].replaceWith(row); });
    else body.replaceChildren(...all);
    // What was refused in a cell that stays is not in the text.
    for (const cell of body.querySelectorAll("input[data-path]")) {
      if (cell === focused() || cell.value === cell.defaultValue) continue;
      cell.value = cell.dataset.was = cell.defaultValue;
    }
    for (const choice of body.querySelectorAll("select[data-path]")) if (choice.selectedOptions[0]?.defaultSelected === false) begin_again(choice);
    refocus(part, left);
  };
  const begin_again = (choice) => { for (const each of choice.options) if (each.defaultSelected) each.selected = true; };
  // Where somebody is in a part that is drawn anew, and what they have typed there so far.
  let drawing = false;
  const leave = (part) => {
    const at = focused();
    if (!at || !part.contains(at) || !at.dataset.key) return null;
    drawing = true;
    return { key: at.dataset.key, typed: at.value !== at.dataset.was, value: at.value, start: at.selectionStart, end: at.selectionEnd };
  };
  const refocus = (part, left) => {
    drawing = false;
    if (!left || part.contains(focused())) return;
    const again = [...part.querySelectorAll("[data-key]")].find((each) => each.dataset.key === left.key);
    if (!again) return;
    again.focus();
    if (again.localName !== "input") return;
    if (left.typed) { again.value = left.value; hear(again); }
    again.setSelectionRange(left.start, left.end);
  };
  const form = ({ of, html }) => {
    const part = find("#part-given");
    if (!part || part.dataset.form === of) return;
    part.dataset.form = of;
    part.innerHTML = html;
  };
  const stale = (id) => {
    const part = find(`#part-${id}`);
    if (!part) return;
    part.classList.add("stale");
    shown.delete(part);
    const note = part.querySelector(".stale-note");
    if (note) note.hidden = false; else part.innerHTML = '<p class="few">Examining all facts… <button type="button" data-act="cancel" data-work="findings">Stop</button></p>';
  };

  // --- The editor ----------------------------------------------------------------------------------------------------

  let loading = null;
  const loadEditor = () => {
    loading ??= new Promise((loaded, failed) => {
      const script = document.createElement("script");
      script.src = "/assets/editor.js";
      script.onload = loaded;
      script.onerror = failed;
      document.head.append(script);
    });
    return loading;
  };
  // What is typed is kept here until the server has saved it: a session that ends loses nothing.
  const kept = (draft) => `draft:${draft}`;
  const keep = (text) => {
    try { sessionStorage.setItem(kept(open.draft), JSON.stringify({ text, base: open.begun.text, edition: open.edition })); } catch { say("This browser cannot keep a copy of unsaved text.", true); }
  };
  const unsaved = (draft) => {
    try { return JSON.parse(sessionStorage.getItem(kept(draft))); } catch { return null; }
  };
  const send_text = () => { clearTimeout(pausing); pausing = null; send(open.begun.writes ? "type" : "look", { text: open.editor.text() }); };
  const offer = (sentence) => {
    const box = document.createElement("div");
    box.className = "conflict";
    box.setAttribute("role", "alert");
    box.append(`${sentence} `);
    for (const [act, label] of [["merge", "Merge both texts"], ["fork", "Save mine as a separate draft"]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.addEventListener("click", () => send(act, { text: open.editor.text(), ...(act === "fork" ? { name: `${open.begun.name} (fork)`.slice(0, 120) } : {}) }));
      box.append(button, " ");
    }
    const state = find("#part-state");
    shown.delete(state);
    state.prepend(box);
  };
  const arrive = async () => {
    // A part that is told of as it goes on asks for it.
    const watch = find("[data-watch]");
    if (watch) { const { watch: act, ...more } = watch.dataset; send(act, more); }
    // Another version than their own decides past decisions, or they are imported: there is something to see at once.
    if (find(".whatif[data-at-once]")) whatIf();
    if (beside && !beside.place.isConnected) { beside.view.close(); beside = null; }
    const texts = find("#comparison");
    if (texts && !beside) {
      await loadEditor();
      if (texts.isConnected && !beside) {
        const { before, after, labels, yaml } = JSON.parse(texts.dataset.shown);
        beside = { place: texts, view: Editor.compare(texts, { before, after, labels, isYaml: yaml, root: texts.getRootNode() }) };
      }
    }
    const place = find("#editor");
    if (open && (!place || !place.contains(open.element))) { open.editor.close(); open = null; clearTimeout(pausing); }
    if (!place || open) return;
    const begun = JSON.parse(place.dataset.begun);
    await loadEditor();
    if (!place.isConnected || open || find("#editor") !== place) return;
    const element = document.createElement("div");
    place.append(element);
    const left = begun.writes ? unsaved(begun.draft) : null;
    open = { element, draft: begun.draft, begun, edition: begun.edition, next: [] };
    open.editor = Editor.open(element, {
      text: begun.text, label: "The draft's text", isYaml: begun.yaml, readOnly: !begun.writes, root: place.getRootNode(),
      changed: (text) => {
        say("Saving…");
        keep(text);
        clearTimeout(pausing);
        pausing = setTimeout(send_text, PAUSE);
      },
      complete: (text, offset) => new Promise((found) => { open.completing = { n: send("complete", { text, offset }), found }; }),
    });
    if (left && left.text !== begun.text) {
      open.begun.text = left.base;
      open.edition = left.edition;
      open.editor.replace(left.text);
      say("Your earlier text was not saved. It is here again.");
    }
    send_text();
  };

  // --- Answers -------------------------------------------------------------------------------------------------------

  const answer = () => {
    const found = JSON.parse(told.value);
    const { act, text: sent } = asked.get(found.n) || {};
    for (const before of asked.keys()) if (before <= found.n) asked.delete(before);
    // The text comes back only where it is another than was sent.
    const text = found.text === undefined ? sent : found.text;
    if (found.n !== undefined) document.body.dataset.answered = found.n;
    if (found.proposals !== undefined) { if (open && open.completing && open.completing.n === found.n) open.completing.found(found.proposals); return; }
    if (found.signed_out) { say(`${found.fault} This tab keeps your input.`, true); find("#saved")?.insertAdjacentHTML("beforeend", ` <a href="/sign-in?next=${encodeURIComponent(location.pathname + location.search)}" data-outside>Sign in</a>`); busy(false); return; }
    if (found.fault) { sending = null; busy(false); fault(act, found.fault); go_on(); return; }
    if (found.received !== undefined) { sendPiece(found.received); return; }
    // Whatever else was typed since goes on from what is saved now.
    if (found.saved && open && found.draft === open.draft) { open.edition = found.edition; open.begun.text = text; }
    if (found.want === "base") { open.known = false; busy(false); if (act === "edit") change(open.doing); else send_text(); return; }
    if (found.draft && open) open.known = true;
    if (found.stale) stale(found.stale);
    if (found.draft && text !== measured) { measured = text; const note = find("#part-measured .stale-note"); if (note) note.hidden = false; }
    // The next change of the table builds on this one, even where the text has moved on.
    if (found.table) table(found.table);
    const late = pausing !== null || (found.n !== undefined && found.n !== latest);
    if (found.draft && late) return;
    for (const [id, html] of Object.entries(found.parts || {})) put(id, html);
    if (found.form) form(found.form);
    if (found.faults) for (const each of (find("#part-given") || find(".whatif")).querySelectorAll("[data-fault]")) each.textContent = found.faults[each.dataset.fault] || "";
    if (found.say !== undefined) say(found.say, Boolean(found.conflict));
    if (open && found.draft) {
      busy(false);
      if (found.draft !== open.draft) { sessionStorage.removeItem(kept(open.draft)); go(`/draft?${new URLSearchParams({ scope: new URLSearchParams(location.search).get("scope") || "", id: found.draft })}`); return; }
      if (text !== open.editor.text()) open.editor.replace(text);
      open.editor.speak(found.yaml);
      open.editor.show(found.marks);
      if (found.conflict) offer(found.conflict); else if (found.saved) sessionStorage.removeItem(kept(open.draft));
    } else if (open && found.marks) { open.editor.speak(found.yaml); open.editor.show(found.marks); }
    if (found.forget) sessionStorage.removeItem(`answer:${found.forget}`);
    if (found.go) go(found.go);
    go_on();
  };
  // What was changed in the table while the change before was on its way.
  const go_on = () => { if (open && !open.busy && open.next.length) change(open.next.shift()); };
  told.properties.value.change.connect(answer);

  // A table's change is on its way: what is typed meanwhile would not know of it.
  const busy = (on) => { if (open) { open.busy = on; open.editor.lock(on || !open.begun.writes); } };
  const fault = (act, message) => {
    const place = find(".act-fault");
    if (place) place.remove();
    const at = answeredFrom && answeredFrom.isConnected ? answeredFrom : null;
    if (at && act !== "type") {
      const told_ = document.createElement("p");
      told_.className = "fault act-fault";
      told_.setAttribute("role", "alert");
      told_.textContent = message;
      at.insertAdjacentElement("afterend", told_);
    } else say(message, true);
  };
  let answeredFrom = null;

  // --- What is pressed and filled in ---------------------------------------------------------------------------------

  const confirmed = (sentence, act) => new Promise((decided) => {
    const dialog = document.createElement("dialog");
    dialog.className = "confirm";
    const text = document.createElement("p");
    text.textContent = sentence;
    const buttons = document.createElement("p");
    for (const [label, yes] of [[act, true], ["Cancel", false]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.addEventListener("click", () => { dialog.close(); decided(yes); });
      buttons.append(button, " ");
    }
    dialog.addEventListener("close", () => { dialog.remove(); decided(false); });
    dialog.append(text, buttons);
    document.body.append(dialog);
    dialog.showModal();
  });
  const composed = (event, has) => event.composedPath().find((node) => node instanceof Element && has(node));

  document.addEventListener("click", async (event) => {
    const offset = composed(event, (node) => node.dataset && node.dataset.offset !== undefined);
    if (offset && open) { open.editor.go(Number(offset.dataset.offset)); return; }
    const button = composed(event, (node) => node.localName === "button");
    if (!button || button.disabled) return;
    const within = composed(event, (node) => node.localName === "form" && node.dataset.act);
    const source = button.dataset.act ? button : within && button.type === "submit" ? within : null;
    if (!source) return;
    event.preventDefault();
    // Of several buttons of a form each is an act of its own, which takes what is filled in.
    const filled = source === within ? within : source.dataset.filled !== undefined ? source.form : null;
    if (filled && !filled.reportValidity()) return;
    const more = { ...source.dataset };
    const act = more.act;
    for (const name of ["act", "filled", "key"]) delete more[name];
    if (more.withAsked !== undefined) { delete more.withAsked; Object.assign(more, JSON.parse(find(".whatif").dataset.asked)); }
    const sentence = more.confirm;
    delete more.confirm;
    if (filled) for (const [name, value] of new FormData(filled)) more[name] = value;
    for (const name of ["facts", "cases"]) if (source !== within && more[name] !== undefined) more[name] = JSON.parse(more[name]);
    if (sentence && !(await confirmed(sentence, button.textContent.trim()))) return;
    answeredFrom = source;
    if (act === "edit") { change(more); return; }
    if (more.file instanceof File) { const { file, ...rest } = more; sendFile({ act, file, more: rest }); return; }
    send(act, more);
  });

  // A file is sent before the act that is about it, a piece after the other: the next one when the last is there.
  const PIECE = 1024 * 1024;
  let sending = null;
  const sendFile = ({ act, file, more }) => { sending = { act, file, more }; sendPiece(0); };
  const sendPiece = async (at) => {
    if (!sending) return;
    const { act, file, more } = sending;
    if (!file.size) { sending = null; fault(act, "The file is empty. Choose another one."); return; }
    if (at >= file.size) { sending = null; say("Reading the file…"); send(act, more); return; }
    say(`Sending the file… ${Math.floor((100 * at) / file.size)}%`);
    const reader = new FileReader();
    reader.addEventListener("load", () => send("send_file", { file: file.name, size: file.size, at, piece: reader.result.slice(reader.result.indexOf(",") + 1) }));
    reader.addEventListener("error", () => { sending = null; fault(act, "The file is no longer readable. Choose it again."); });
    reader.readAsDataURL(file.slice(at, at + PIECE));
  };

  // The table changes the text as it is in the editor.
  const change = (more) => {
    if (!open) return;
    if (find("#part-rules.stale")) { fault("edit", "Nothing changed: the text is not valid, and the table shows the rules of its last valid version. Fix the text first."); return; }
    if (open.busy) {
      // Behind a value that is set all places are what they were; a rule or a test that comes or goes moves others.
      if (open.doing.do === "set") open.next.push(more);
      else fault("edit", "Nothing changed: the previous change was not finished. Try again.");
      return;
    }
    clearTimeout(pausing);
    pausing = null;
    open.doing = more;
    busy(true);
    say("Saving…");
    send("edit", { ...more, text: open.editor.text() });
  };
  const commit = (cell) => {
    if (!open || drawing || cell.value === cell.dataset.was) return;
    const { value } = cell;
    if (find("#part-rules.stale")) cell.value = cell.dataset.was; else cell.dataset.was = value;
    answeredFrom = cell;
    change({ do: "set", path: cell.dataset.path, value });
  };
  // Heard at the cell itself: where the focus goes to another cell, nothing of it leaves the shadow that both are in.
  const heard = new WeakSet();
  const hear = (cell) => {
    if (heard.has(cell)) return;
    heard.add(cell);
    cell.addEventListener("blur", () => commit(cell));
  };
  document.addEventListener("keydown", (event) => {
    const cell = composed(event, (node) => node.localName === "input" && node.dataset.path);
    if (!cell) return;
    if (event.key === "Enter") { event.preventDefault(); commit(cell); }
    if (event.key === "Escape") cell.value = cell.dataset.was;
  });
  const lines = () => {
    const found = {};
    const part = find("#part-given");
    for (const each of part.querySelectorAll("[data-fact]")) {
      const is = [...part.querySelectorAll("[data-fact-is]")].find((one) => one.dataset.factIs === each.dataset.fact);
      if (is) each.disabled = is.value === "null";
      found[each.dataset.fact] = { is: is ? is.value : each.value === "" ? "absent" : "value", text: each.value };
    }
    return found;
  };
  document.addEventListener("input", (event) => {
    const choice = composed(event, (node) => node.localName === "select" && node.dataset.path);
    if (choice) {
      const { value } = choice;
      if (find("#part-rules.stale")) begin_again(choice);
      answeredFrom = choice;
      change({ do: "set", path: choice.dataset.path, value });
      return;
    }
    const cell = composed(event, (node) => node.localName === "input" && node.dataset.path);
    if (cell) { hear(cell); return; }
    const fact = composed(event, (node) => node.dataset && (node.dataset.fact !== undefined || node.dataset.factIs !== undefined));
    if (!fact) return;
    if (fact.localName === "input" && fact.dataset.fact !== undefined) {
      const is = [...find("#part-given").querySelectorAll("[data-fact-is]")].find((one) => one.dataset.factIs === fact.dataset.fact);
      if (is && is.value === "absent") is.value = "value";
    }
    clearTimeout(giving);
    giving = setTimeout(() => send("give", { lines: lines() }), PAUSE);
  });
  // The levers of a what-if: those that were moved are sent, and all others stay as they were.
  let moving = null;
  const levers = () => [...find(".whatif").querySelectorAll(".lever")];
  const move = (lever, value, is = "value") => {
    const [range, choice, text, state] = ['[type="range"]', "[data-choice]", "[data-text]", "[data-is]"].map((each) => lever.querySelector(each));
    text.value = value;
    if (range && value !== "") range.value = value;
    if (choice && [...choice.options].some((each) => each.value === value)) choice.value = value;
    state.value = is;
    lever.classList.toggle("moved", is !== "");
  };
  const addressed = (name, value) => {
    const query = new URLSearchParams(location.search);
    if (value) query.set(name, value); else query.delete(name);
    return `${location.pathname}?${query}`;
  };
  const whatIf = () => {
    clearTimeout(moving);
    moving = setTimeout(() => {
      const place = find(".whatif");
      const lines = {};
      for (const lever of levers()) {
        const is = lever.querySelector("[data-is]").value;
        if (is) lines[lever.dataset.lever] = { is, text: lever.querySelector("[data-text]").value };
      }
      const metric = place.querySelector("[data-metric]").value.trim();
      stay(addressed("metric", metric));
      send("what_if", { ...JSON.parse(place.dataset.asked), lines, ...(metric ? { metric } : {}) });
    }, PAUSE);
  };
  document.addEventListener("input", (event) => {
    const lever = composed(event, (node) => node.classList && node.classList.contains("lever"));
    if (lever) {
      const at = event.composedPath()[0];
      if (at.dataset.is !== undefined) move(lever, at.value === "" ? lever.dataset.was : lever.querySelector("[data-text]").value, at.value);
      else move(lever, at.value);
      whatIf();
    } else if (composed(event, (node) => node.dataset && node.dataset.metric !== undefined)) whatIf();
  });
  document.addEventListener("click", (event) => {
    const button = composed(event, (node) => node.localName === "button" && (node.dataset.reset !== undefined || node.dataset.flip !== undefined));
    if (!button) return;
    for (const lever of levers()) move(lever, lever.dataset.was, "");
    if (button.dataset.flip) {
      for (const { field, after } of JSON.parse(button.dataset.flip)) {
        const lever = levers().find((each) => each.dataset.lever === field);
        if (lever) move(lever, after === undefined || after === null ? "" : typeof after === "string" ? after : JSON.stringify(after), after === undefined ? "absent" : after === null ? "null" : "value");
      }
    }
    whatIf();
  });
  // What is unsaved stays in this tab, also while somebody signs in again; it goes with the tab.
  let leaving = false;
  document.addEventListener("click", (event) => { leaving = Boolean(composed(event, (node) => node.localName === "a" && node.dataset.outside !== undefined)); });
  window.addEventListener("beforeunload", (event) => { if (!leaving && open && (pausing !== null || unsaved(open.draft))) event.preventDefault(); });

  return arrive;
};

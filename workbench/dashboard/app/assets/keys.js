// The keys of the queue of reviews: j and k (or the arrows) move, g and r begin an answer, Ctrl+Enter gives it, Escape
// leaves. All they do, links and buttons do as well; letters can be turned off, for those who speak to their browser.
"use strict";

// eslint-disable-next-line no-unused-vars
const keys = ({ find, go }) => {
  const SETTING = "letter-keys";
  const MOVES = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };
  let visited = null;

  const letters = () => localStorage.getItem(SETTING) !== "off";
  const within = (event, has) => event.composedPath().find((node) => node instanceof Element && has(node));
  const focused = () => {
    let at = document.activeElement;
    while (at && at.shadowRoot && at.shadowRoot.activeElement) at = at.shadowRoot.activeElement;
    return at;
  };
  const named = (key) => find(`[data-key="${key}"]`);

  // --- The list ------------------------------------------------------------------------------------------------------

  const move = (rows, step) => {
    const links = [...rows.querySelectorAll("[data-row]")];
    const at = links.indexOf(focused());
    const to = at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + step, 0), links.length - 1);
    links[to].focus();
    links[to].closest("tr").scrollIntoView({ block: "nearest" });
  };

  // --- One review ----------------------------------------------------------------------------------------------------

  // The answer that is begun, while its reason is written.
  const begin = (key) => {
    const button = named(key);
    const why = find("[data-why-not]");
    if (!button) { if (why) why.focus(); return; }
    const form = button.form;
    for (const each of form.querySelectorAll("[data-answer]")) each.classList.toggle("chosen", each === button);
    form.querySelector("[data-hint]").textContent = `Write a note, then press Ctrl+Enter to ${button.textContent.trim().toLowerCase()}. Press Escape to leave the note.`;
    form.elements.note.focus();
  };
  const follow = (key) => {
    const link = named(key);
    if (link) go(link.getAttribute("href"));
    return Boolean(link);
  };

  // What is filled in stays in this tab until the answer is recorded.
  const kept = (form) => `answer:${form.dataset.keep}`;
  const keep = (form) => {
    const { note, evidence } = form.elements;
    try { sessionStorage.setItem(kept(form), JSON.stringify({ note: note.value, evidence: evidence.value })); } catch { /* It is still in the form. */ }
  };
  const restore = (form) => {
    let left = null;
    try { left = JSON.parse(sessionStorage.getItem(kept(form))); } catch { return; }
    for (const [name, value] of Object.entries(left || {})) if (form.elements[name] && !form.elements[name].value) form.elements[name].value = value;
    // An answer that came too late is shown while there is one.
    if (form.dataset.unsent !== undefined) form.hidden = !form.elements.note.value;
  };

  const pressed = (event) => {
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const rows = find("[data-rows]");
    const review = find("[data-review]");
    if (!rows && !review) return;
    const field = within(event, (node) => ["textarea", "select", "input"].includes(node.localName));
    if (field) {
      const form = review && field.closest("[data-keep]");
      const chosen = form && form.querySelector(".chosen");
      if (form && event.key === "Escape") find("h1").focus();
      else if (chosen && event.key === "Enter" && (event.ctrlKey || event.metaKey)) chosen.click();
      else return;
      event.preventDefault();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || (event.key.length === 1 && !letters())) return;
    if (rows && MOVES[event.key]) move(rows, MOVES[event.key]);
    else if (review && ["g", "r"].includes(event.key)) begin(event.key);
    else if (!(review && ["j", "k", "Escape"].includes(event.key) && !find(".who details[open]") && follow(event.key))) return;
    event.preventDefault();
  };

  const show = (button) => {
    button.textContent = letters() ? "Turn the letter keys off" : "Turn the letter keys on";
    find("[data-keys-help]").classList.toggle("off", !letters());
  };
  document.addEventListener("keydown", pressed);
  document.addEventListener("click", (event) => {
    const button = within(event, (node) => node.dataset.keys !== undefined);
    if (!button) return;
    localStorage.setItem(SETTING, letters() ? "off" : "on");
    show(button);
  });
  document.addEventListener("input", (event) => {
    const form = within(event, (node) => node.localName === "form" && node.dataset.keep !== undefined);
    if (form) keep(form);
  });

  // A page is shown.
  return () => {
    const switch_ = find("[data-keys]");
    if (switch_) show(switch_);
    const form = find("form[data-keep]");
    if (form) restore(form);
    const rows = find("[data-rows]");
    const row = rows && visited && rows.querySelector(`[data-row="${CSS.escape(visited)}"]`);
    if (row) row.focus();
    const late = find("[data-late]");
    if (late) late.focus();
    const review = find("[data-review]");
    visited = review ? review.dataset.review : null;
  };
};

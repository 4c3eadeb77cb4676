// The editor of drafts: CodeMirror with the problems and completions that the server tells.
//
//   const editor = Editor.open(parent, { text, label, yaml, readOnly, changed, complete });
//   editor.show(problems);          // [{start, end, severity, message}]
//   editor.replace(text);           // a text from elsewhere, such as the table; it can be undone
//   editor.go(offset); editor.text(); editor.close();
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, defaultHighlightStyle, foldGutter, foldKeymap, indentOnInput, syntaxHighlighting, HighlightStyle } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { MergeView } from "@codemirror/merge";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Annotation, Compartment, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const told = Annotation.define();

// Colours are those of the page, light and dark.
const style = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--editor-name)" },
  { tag: [tags.string, tags.content], color: "var(--editor-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--editor-value)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--editor-comment)", fontStyle: "italic" },
  { tag: tags.invalid, color: "var(--editor-invalid)" },
]);

// The parsers' trees are walked by recursion, which a text that is nested deeper than any rulebook would exhaust.
const DEEP = 200;
const deep = (text) => {
  if (new RegExp(`^[ \\t]*(?:- ?){${DEEP}}`, "m").test(text)) return true;
  let depth = 0;
  for (const [found] of text.matchAll(/[[\]{}]/g)) {
    depth = found === "[" || found === "{" ? depth + 1 : Math.max(0, depth - 1);
    if (depth > DEEP) return true;
  }
  return false;
};
const language = (isYaml, isDeep) => (isDeep ? [] : isYaml ? yaml() : json());

// Between two strings, the one stretch that differs: what came from elsewhere moves no cursor outside of it.
const difference = (before, after) => {
  let start = 0;
  const most = Math.min(before.length, after.length);
  while (start < most && before.charCodeAt(start) === after.charCodeAt(start)) start += 1;
  let end = 0;
  while (end < most - start && before.charCodeAt(before.length - 1 - end) === after.charCodeAt(after.length - 1 - end)) end += 1;
  return { from: start, to: before.length - end, insert: after.slice(start, after.length - end) };
};

export const open = (parent, { text, label, isYaml, readOnly = false, root, changed = () => {}, complete = async () => null }) => {
  const languages = new Compartment();
  const writing = new Compartment();
  let current = isYaml;
  let tooDeep = deep(text);
  // What is typed nests no text so deeply at once; what is pasted may.
  const relearn = (change) => {
    if (!change.docChanged) return null;
    let added = 0;
    change.changes.iterChanges((from, to, start, end) => { added = Math.max(added, end - start); });
    if (added < DEEP && !tooDeep) return null;
    const now = deep(change.newDoc.toString());
    if (now === tooDeep) return null;
    tooDeep = now;
    return { effects: languages.reconfigure(language(current, tooDeep)) };
  };
  const source = async (context) => {
    const word = context.matchBefore(/[\w.-]*/);
    if (!context.explicit && (!word || word.from === word.to)) return null;
    const found = await complete(context.state.doc.toString(), context.pos);
    if (!found) return null;
    const from = word ? word.from : context.pos;
    return { from, options: found.map(({ label: shown, detail, apply }) => ({ label: shown, detail, apply })), validFor: /^[\w.-]*$/ };
  };
  const view = new EditorView({
    parent,
    root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(), foldGutter(), lintGutter(), highlightActiveLine(), highlightActiveLineGutter(), drawSelection(),
        history(), indentOnInput(), bracketMatching(), closeBrackets(), highlightSelectionMatches(), search({ top: true }),
        syntaxHighlighting(style), syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
        autocompletion({ override: [source] }),
        languages.of(language(isYaml, tooDeep)),
        EditorState.transactionExtender.of(relearn),
        writing.of(EditorState.readOnly.of(readOnly)),
        EditorState.tabSize.of(2),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
        // Escape leaves the editor, so that Tab, which indents in it, traps nobody.
        keymap.of([
          { key: "Escape", run: (at) => { at.contentDOM.blur(); return true; } },
          ...closeBracketsKeymap, ...completionKeymap, ...defaultKeymap, ...historyKeymap, ...foldKeymap, ...lintKeymap,
          ...searchKeymap, indentWithTab,
        ]),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged || update.transactions.every((each) => each.annotation(told))) return;
          changed(update.state.doc.toString());
        }),
      ],
    }),
  });
  const inside = (offset) => Math.min(Math.max(offset, 0), view.state.doc.length);
  return {
    text: () => view.state.doc.toString(),
    show: (problems) => {
      const marks = problems.map(({ start, end, severity, message }) => ({ from: inside(start), to: inside(end), severity, message }));
      view.dispatch(setDiagnostics(view.state, marks));
    },
    replace: (to) => {
      view.dispatch({ changes: difference(view.state.doc.toString(), to), annotations: told.of(true), userEvent: "input" });
    },
    speak: (toYaml) => {
      if (toYaml === current) return;
      current = toYaml;
      view.dispatch({ effects: languages.reconfigure(language(toYaml, tooDeep)) });
    },
    go: (offset) => {
      view.dispatch({ selection: { anchor: inside(offset) }, effects: EditorView.scrollIntoView(inside(offset), { y: "center" }) });
      view.focus();
    },
    focus: () => view.focus(),
    lock: (locked) => view.dispatch({ effects: writing.reconfigure(EditorState.readOnly.of(locked)) }),
    close: () => view.destroy(),
  };
};

// Two texts side by side, the second one editable where `changed` is given.
export const compare = (parent, { before, after, labels, isYaml, root, changed }) => {
  const tooDeep = deep(before) || deep(after);
  const side = (doc, label, editable) => ({
    doc,
    extensions: [
      lineNumbers(), syntaxHighlighting(style), language(isYaml, tooDeep), EditorView.lineWrapping,
      EditorState.readOnly.of(!editable), EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
      EditorView.updateListener.of((update) => { if (editable && update.docChanged) changed(update.state.doc.toString()); }),
    ],
  });
  const view = new MergeView({
    parent, root, a: side(before, labels[0], false), b: side(after, labels[1], Boolean(changed)),
    gutter: true, collapseUnchanged: { margin: 3, minSize: 6 },
  });
  return { close: () => view.destroy() };
};

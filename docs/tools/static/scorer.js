// How the site's search ranks its pages: those that show a task before those that explain it, before the reasons of the
// architecture. Sphinx reads the numbers, which are its own defaults, and calls `score` with each result.
"use strict";

const FOLDERS = { tutorials: 8, guides: 8, explanation: 3, adr: -8 };

// eslint-disable-next-line no-unused-vars, no-var
var Scorer = {
  score: ([page, , , , score]) => score + (FOLDERS[page.split("/")[0]] || 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

"""Tests of rulebooks: cases, their runs, and how well they test.

    cases         cases as authors write them: facts, and the outcome expected of them
    advice        warnings: facts that the rulebook does not know, expectations that can never hold
    runs          running cases: the outcome of each, by the names that cases use, and how it differs from the expected
    failures      why a case does not hold: the rules and tests that made the difference
    coverage      which rules, tests and combinators the cases try, and which they leave out
    boundaries    values at the edges of tests: at, just below and just above a number, listed and not, absent, null
    mutants       rulebooks with one small change, as an author might have made it by mistake
    mutation      the mutation score: how many mutants the cases notice
    proposals     cases that close holes or try boundaries, for a person to confirm
    exact         the exact analysis, as it is asked by coverage and mutation
    answers       answers of the exact analysis to the questions that coverage and mutation ask
    shares        shares and percentages that are never rounded up
    steps         numbers one natural step apart

Pure. `docs/guides/test-a-rulebook.md` is the guide for authors.
"""

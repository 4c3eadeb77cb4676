"""Tests of rulebooks: cases, their runs, and how well they test.

    cases         cases as authors write them: facts, and the outcome expected of them
    advice        warnings: facts that the rulebook does not know, expectations that can never hold
    outcomes      outcomes by the names that cases have for their parts
    runs          running cases: the outcome of each, and how it differs from the expected one
    failures      why a case does not hold: the rules and tests that made the difference

Pure. docs/testing-rulebooks.md is the guide for authors.
"""

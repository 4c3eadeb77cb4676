"""Rulebooks: how they are validated, compiled and evaluated, and the ones that the product ships.

    documents     the types of rulebooks, of what records cite of them, and of evaluations
    rulebook      Rulebook v1: validation with sentences for authors, its hash, a cache of compiled ones
    evaluation    operators, conditions, priorities, and the explanation of every test
    facts         the values that a rulebook decides over, and where they came from
    bundles       the product's own rulebooks, active and historical
    patterns      policy patterns: a rulebook with examples and advice

Pure. Rulebook v1 and its evaluator are frozen, for stored records are replayed with them: CONTRIBUTING.md says how an
operator is added. Registered rulebooks are in `ledger.rulebooks`, decisions in `decisions`.
"""

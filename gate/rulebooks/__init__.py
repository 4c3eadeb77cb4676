"""Rulebooks: validation, compilation, and evaluation, and the rulebooks of the product.

    documents     the types of rulebooks, of what records cite of them, and of evaluations
    rulebook      Rulebook v1: validation with sentences for authors, its hash, a cache of compiled ones
    authoring     the authoring form: Rulebook v1 with comments, which are removed before hashing
    conditions    walking conditions
    advice        warnings: rules that are legal and probably not meant
    codes         the meanings of the codes of errors, warnings, and findings
    evaluation    operators, conditions, priorities, and the explanation of every test
    explanation   conditions as trees of sentences, each node with the reason of its result
    comparison    two versions side by side: rules, fields and default outcome that differ
    edits         what an author changed between them, in sentences
    facts         the values that a rulebook decides over, and where they came from
    testing/      cases of a rulebook, and what they cover
    analysis/     statements about a rulebook for all facts
    bundles       the product's own rulebooks, active and historical
    patterns      policy patterns: a rulebook with examples and advice
    testing       tests of rulebooks: cases, their runs, and why one fails

Pure functions. Rulebook v1 and its evaluator are frozen, because stored records are replayed with them.
`CONTRIBUTING.md` says how to add an operator. Registered rulebooks are in `ledger.rulebooks`, decisions in `decisions`.
"""

"""Migrations over the lake: the decisions that a candidate would have made, and the documents about them.

    proof        everything about a migration at once, as its author proposes it
    drafted      the same for a draft, without files
    report       the same as HTML and as Markdown
    headline     the sentences that a person reads first
    asked        the history dry run for analysts
    history      the history dry run: a candidate decides past decisions again
    source       the source of past decisions: the lake, or another history
    deciding     the original, the active, and the candidate's result, as columns
    classes      classes of values, and regions of the exact analysis, as columns
    tally        the counts, by stretches of the chain
    values       the counts by the values of facts
    figures      the figures, computed from the counts
    sentences    the sentences next to them

All of them read the lake only.
"""

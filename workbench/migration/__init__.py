"""Migrations over the lake: what a candidate would have decided, and the documents about it.

proof        everything about a migration at once, as its author proposes it
report       the same as HTML and as Markdown
headline     the sentences that a person reads first
history      the history dry run: past decisions decided anew by a candidate
tally        what it counts, a stretch of the chain at a time
classes      classes of values, and regions of the exact analysis, as columns
figures      the figures, made of what was counted
sentences    the sentences beside them
"""

"""Migrations over the lake: what a candidate would have decided, and the documents about it.

proof        everything about a migration at once, as its author proposes it
drafted      the same of a draft, without files
report       the same as HTML and as Markdown
headline     the sentences that a person reads first
asked        the history dry run as analysts ask for it
history      the history dry run: past decisions decided anew by a candidate
source       where past decisions come from: the lake, or another history
deciding     what was, is and would be decided, as columns
classes      classes of values, and regions of the exact analysis, as columns
tally        what is counted, a stretch of the chain at a time
values       what is counted by the values of facts
figures      the figures, made of what was counted
sentences    the sentences beside them
"""

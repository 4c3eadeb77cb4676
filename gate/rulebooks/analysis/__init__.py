"""The exact analysis of rulebooks: what holds for all facts, not only for those that were tried.

    from gate.rulebooks.analysis import analyse
    found = analyse(body, against=earlier)
    [finding.message for finding in found.findings]
    [(region.condition, region.witness) for region in found.difference.regions]

The values of each field are divided into classes that no test tells apart. A point of their product represents all
facts that no test tells apart. Rulebooks become formulas over points, and a SAT solver answers them without trying
points one by one. The evaluator runs every witness before it is shown. A question that reaches a bound stays undecided
and is never guessed.

    report        the analysis as one value: `analyse` and `compare`
    difference    two rulebooks: the regions in which their results differ
    examination   one rulebook: rules that never match or contend, tests that decide nothing, the default outcome
    absence       what a rulebook makes of facts that are missing or of a wrong type
    flips         the smallest changes of facts that give another verdict
    questions     facts on demand, for coverage and boundary cases
    finding       a finding
    regions       the points of a formula, as few wide conditions
    wording       such conditions in words
    formulas/     rulebooks as formulas, which a SAT solver answers

`docs/explanation/rulebook-analysis.md` has the guarantee and its limits.
"""

from gate.rulebooks.analysis.flips import Flip, nearest_flips
from gate.rulebooks.analysis.formulas.solver import NotDecided
from gate.rulebooks.analysis.questions import Questions
from gate.rulebooks.analysis.report import Analysis, analyse, compare, find_difference

__all__ = ["Analysis", "Flip", "NotDecided", "Questions", "analyse", "compare", "find_difference", "nearest_flips"]

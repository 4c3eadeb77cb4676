"""The exact analysis as the finder of coverage and the judge of mutants."""

from __future__ import annotations

from typing import Final

from gate.rulebooks.analysis import NotDecided, Questions, find_difference
from gate.rulebooks.documents import RulebookBody
from gate.rulebooks.testing.answers import Answer, Found, Never, Undecided
from gate.rulebooks.testing.coverage import Wanted

MAX_JUDGED: Final = 500
"""How many mutants are judged at most: seconds for a rulebook of usual size, a minute for the largest."""


class ExactFinder:
    """Finds facts for evaluations of one rulebook; `coverage.Finder`."""

    def __init__(self, questions: Questions) -> None:
        """Asks a rulebook."""
        self._questions = questions

    def find(self, wanted: Wanted) -> Answer:
        """Facts for which an evaluation is as wanted."""
        try:
            if wanted.rule_id is None:
                facts = self._questions.default_facts()
            else:
                facts = self._questions.facts(wanted.rule_id, dict(wanted.nodes))
        except NotDecided as error:
            return Undecided(str(error))
        return Never() if facts is None else Found(facts)


class ExactJudge:
    """Decides whether two rulebooks decide alike; `mutation.Judge`.

    After `MAX_JUDGED` questions it decides none.
    """

    def __init__(self) -> None:
        """Has decided nothing yet."""
        self._judged = 0

    def difference(self, original: RulebookBody, mutant: RulebookBody) -> Answer:
        """Facts for which the outcomes of two valid rulebooks differ."""
        self._judged += 1
        if self._judged > MAX_JUDGED:
            return Undecided(f"{MAX_JUDGED} mutants were judged before it; more cases leave fewer to judge")
        try:
            facts = find_difference(original, mutant)
        except NotDecided as error:
            return Undecided(str(error))
        return Never() if facts is None else Found(facts)

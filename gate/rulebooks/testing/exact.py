"""The exact analysis as the finder of coverage and the judge of mutants."""

from __future__ import annotations

from gate.rulebooks.analysis import NotDecided, Questions, find_difference
from gate.rulebooks.documents import RulebookBody
from gate.rulebooks.testing.answers import Answer, Found, Never, Undecided
from gate.rulebooks.testing.coverage import Wanted


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
    """Decides whether two rulebooks decide alike; `mutation.Judge`."""

    def difference(self, original: RulebookBody, mutant: RulebookBody) -> Answer:
        """Facts for which the outcomes of two valid rulebooks differ."""
        try:
            facts = find_difference(original, mutant)
        except NotDecided as error:
            return Undecided(str(error))
        return Never() if facts is None else Found(facts)

"""The SAT solver, with bounds: a question that costs too much is not decided, and never guessed.

Costs are counted in conflicts of the solver, not in seconds, so that an answer is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

MAX_CONFLICTS: Final = 50_000
"""How many conflicts one question may cost: seconds at most."""

MAX_CONFLICTS_TOGETHER: Final = 500_000
"""How many conflicts all questions of an analysis may cost."""

TRUE: Final = 1
"""The literal that always holds; -TRUE never does."""


class NotDecided(Exception):
    """A bound was hit before a question was answered; the message says which, as the end of a sentence."""


class Solver:
    """Clauses, to which others can be added. A literal is a variable's number, negative where it denies the one."""

    def __init__(self, *, conflicts: int = MAX_CONFLICTS, together: int = MAX_CONFLICTS_TOGETHER) -> None:
        """Begins without clauses.

        Args:
            conflicts: How many conflicts a question may cost.
            together: How many conflicts all questions may cost.
        """
        # Loaded where it is used: what only reads rulebooks does not wait for it.
        from pysat.solvers import Minisat22

        self._solver: Final[Any] = Minisat22()
        self._each: Final = conflicts
        self._together: Final = together
        self._last = TRUE
        self.add([TRUE])

    def variable(self) -> int:
        """A new variable."""
        self._last += 1
        return self._last

    def add(self, clause: Sequence[int]) -> None:
        """Adds a clause: one of the literals holds."""
        self._solver.add_clause(clause)

    def prefer(self, literal: int) -> None:
        """Lets solutions have a literal hold where nothing speaks against it."""
        self._solver.set_phases([literal])

    def solve(self, assumptions: Sequence[int] = ()) -> bool:
        """Whether all clauses and assumptions can hold together; then `holds` reads the solution that was found.

        Raises:
            NotDecided: It cost too much.
        """
        left = self._together - self._spent()
        if left <= 0:
            raise NotDecided(f"the analysis cost more than {self._together} steps")
        self._solver.conf_budget(min(self._each, left))
        found: bool | None = self._solver.solve_limited(assumptions=list(assumptions))
        if found is None:
            raise NotDecided(f"it cost more than {min(self._each, left)} steps")
        self._model: list[int] = self._solver.get_model() if found else []
        return found

    def holds(self, literal: int) -> bool:
        """Whether a literal holds in the solution found last."""
        return (self._model[abs(literal) - 1] > 0) is (literal > 0)

    def core(self) -> list[int]:
        """The assumptions that were enough to make the last question impossible."""
        return self._solver.get_core() or []

    def smallest_core(self, assumptions: Iterable[int], always: Sequence[int] = ()) -> list[int]:
        """A smallest subset of assumptions that cannot hold together: without any one of them, the rest can.

        Args:
            assumptions: The assumptions; those that stand first are left out first.
            always: Assumptions that stay.

        Raises:
            NotDecided: It cost too much.
        """
        wanted = list(assumptions)
        self.solve([*always, *wanted])
        kept = set(self.core())
        wanted = [literal for literal in wanted if literal in kept]
        for literal in list(wanted):
            if literal not in wanted:
                continue
            others = [other for other in wanted if other != literal]
            if not self.solve([*always, *others]):
                kept = set(self.core())
                wanted = [other for other in others if other in kept]
        return wanted

    def close(self) -> None:
        """Frees the solver's memory."""
        self._solver.delete()

    def _spent(self) -> int:
        return int(self._solver.accum_stats()["conflicts"])

"""Formulas over points, and which classes of a field they hold for."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from hypothesis import given, settings

from gate.rulebooks.analysis.formulas.encoding import Encoder
from gate.rulebooks.analysis.formulas.solver import Solver
from gate.rulebooks.analysis.formulas.space import Space
from tests.support.random_rulebooks import rulebooks
from tests.support.tiers import examples
from tests.support.torture import size


@settings(max_examples=examples(size(40, 2_000)))
@given(rulebooks())
def test_the_classes_of_a_field_are_those_that_the_solver_finds_one_by_one(body: Any) -> None:
    with closing(Solver()) as solver:
        encoder = Encoder(Space([body], solver))
        encoded = encoder.encode(body)
        for field in encoder.space.fields.values():
            for literal in (encoded.valid, *encoded.results.values()):
                found = encoder.classes_of(field, [literal])
                assert found == {index for index, one in enumerate(field.classes) if solver.solve([literal, one])}

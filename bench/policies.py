"""Rulebooks of a given size for benchmarks, the same for the same seed: three tests a rule."""

from __future__ import annotations

import copy
import math
import random
from typing import Any, Final

CONSTANTS: Final = 19
"""How many constants each number and text is compared with: 39 spans of numbers."""


def policy(rules: int, fields: int, seed: int) -> Any:
    """A valid rulebook of so many rules over so many fields."""
    author = _Author(fields, seed)
    return {
        "schema_version": "rulebook_v1",
        "rulebook_id": "benchmark",
        "version": str(seed),
        "input_schema": {
            "required": list(author.types),
            "properties": {name: {"type": type_} for name, type_ in author.types.items()},
        },
        "rules": [author.rule(number) for number in range(rules)],
        "default_outcome": _outcome("review", 0),
    }


def with_another_test(body: Any, seed: int) -> Any:
    """The rulebook with one test of one rule replaced."""
    changed = copy.deepcopy(body)
    author = _Author(len(body["input_schema"]["required"]), seed)
    changed["rules"][len(changed["rules"]) // 2]["condition"]["all"][0] = author.test()
    return changed


def points(body: Any, most: int, seed: int) -> list[dict[str, Any]]:
    """Facts at points of the grid of a rulebook, drawn at random."""
    chance = random.Random(seed)
    values: dict[str, list[Any]] = {"number": [at / 2 for at in range(2000)], "boolean": [True, False]}
    values["string"] = [f"v{at}" for at in range(CONSTANTS + 1)]
    types = {name: declared["type"] for name, declared in body["input_schema"]["properties"].items()}
    return [{name: chance.choice(values[type_]) for name, type_ in types.items()} for _ in range(most)]


def size(body: Any) -> int:
    """How many points the grid of a rulebook has: the product of the classes of its fields."""
    classes = {"number": 2 * CONSTANTS + 1, "string": CONSTANTS + 1, "boolean": 2}
    return math.prod(classes[declared["type"]] for declared in body["input_schema"]["properties"].values())


class _Author:
    def __init__(self, fields: int, seed: int) -> None:
        self._chance: Final = random.Random(seed)
        numbers, texts = fields * 5 // 8, fields * 2 // 8
        kinds = ["number"] * numbers + ["string"] * texts + ["boolean"] * (fields - numbers - texts)
        self.types: Final = {f"f{number}": kind for number, kind in enumerate(kinds)}
        # The constants of a field are the same in every rulebook.
        chance = random.Random(fields)
        self._constants: Final = {name: sorted(chance.sample(range(1000), CONSTANTS)) for name in self.types}

    def rule(self, number: int) -> dict[str, Any]:
        decision = self._chance.choice(["yes", "no", "review"])
        return {
            "rule_id": f"r{number:03}",
            "priority": self._chance.randrange(900),
            "condition": {"all": [self.test() for _ in range(3)]},
            "outcome": _outcome(decision, number),
        }

    def test(self) -> dict[str, Any]:
        name = self._chance.choice(list(self.types))
        if self.types[name] == "number":
            operator = self._chance.choice(["gte", "lte", "gt", "lt"])
            return {"field": name, "operator": operator, "value": self._chance.choice(self._constants[name])}
        if self.types[name] == "string":
            listed = [f"v{at}" for at in self._chance.sample(range(CONSTANTS), self._chance.randint(1, 6))]
            return {"field": name, "operator": self._chance.choice(["in", "not_in"]), "value": listed}
        return {"field": name, "operator": "eq", "value": self._chance.choice([True, False])}


def _outcome(decision: str, number: int) -> dict[str, str]:
    return {
        "decision": decision,
        "verdict": f"{decision.upper()}_1",
        "action": f"do_{decision}",
        "reason_code": f"R{number}",
    }

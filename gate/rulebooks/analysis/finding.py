"""A finding of the analysis: something about a rulebook that its author should know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from gate.encoding.strict_json import JsonObject

Severity: TypeAlias = Literal["danger", "warning", "note"]


class Inconsistent(AssertionError):
    """The evaluator does not confirm a witness: a defect of the analysis, which must not pass for an answer."""


_OF_A_FIELD: Final = "input_schema.properties."


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a rulebook that its author should know.

    Attributes:
        kind: Its kind, as a stable word; `docs/reference/rulebook-codes.md` lists the kinds.
        severity: `danger`: facts are approved that probably should not be, or a rule that holds back never does;
            `warning`: probably not meant; `note`: worth knowing.
        rule_ids: The rules concerned, the one that the finding is about first.
        path: The place in the rulebook: `rules[0].condition.all[1]`.
        message: The finding as sentences.
        witness: Facts that show it; None where no facts do.
        accepted: Whether a person has accepted it; it is then no danger.
    """

    kind: str
    severity: Severity
    rule_ids: tuple[str, ...]
    path: str
    message: str
    witness: JsonObject | None = None
    accepted: bool = False

    @property
    def name(self) -> str:
        """The name by which it is accepted, of its kind and its field, rule, or place: `approves_without_fact:tags`."""
        field = self.path.removeprefix(_OF_A_FIELD)
        subject = field if field != self.path else self.rule_ids[0] if self.rule_ids else self.path
        return f"{self.kind}:{subject}"

    def to_dict(self) -> dict[str, object]:
        """The finding as a JSON object."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "rule_ids": list(self.rule_ids),
            "path": self.path,
            "message": self.message,
            "witness": self.witness,
            "name": self.name,
            "accepted": self.accepted,
        }

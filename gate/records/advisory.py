"""The fields of an advisory record that follow from an upstream's answer: its verdict, its evidence, its sources.

    answer = {"answer": "yes", "reason": "..."}
    advised("single", answer)      # verdict yes, word approved, reason code ADVISORY_YES

Making and verifying such records use the same functions. The page `docs/reference/wire-format/advisory.md` has the
formulas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from gate.labels import ADVISORY_EVALUATOR

if TYPE_CHECKING:
    from gate.records.documents import Source

ADVISORY_MODES: Final = ("single", "multi", "runtime")
"""The modes whose answers authorize nothing."""

ADVISORY_ACTION: Final = "hold_for_binding_decision"
"""The action of every advisory record, with any verdict."""

ADVISORY_VERDICT: Final = "ADVISORY"
"""The application verdict of every advisory record, because it has no rulebook."""

BINDING_PARTS: Final = (
    "rulebook",
    "rulebook_contract",
    "runtime_binding",
    "rulebook_registry",
    "registry_attestation",
    "rulebook_attestation",
    "trusted_adapter",
    "adapter_facts",
)
"""The fields that no advisory record has."""


class Advised(NamedTuple):
    """The meaning of an answer.

    Attributes:
        verdict: `yes`, `no` or `review`.
        word: The record's `v`.
        reason_code: The record's reason code.
    """

    verdict: str
    word: str
    reason_code: str


_SINGLE: Final[Mapping[str, Advised]] = {
    "yes": Advised("yes", "approved", "ADVISORY_YES"),
    "no": Advised("no", "denied", "ADVISORY_NO"),
    "unclear": Advised("review", "unclear", "ADVISORY_UNCLEAR"),
}
_BY_MODE: Final = {
    "single": tuple(_SINGLE.values()),
    "multi": (Advised("review", "unclear", "ADVISORY_SCORES"),),
    "runtime": (Advised("review", "unclear", "ADVISORY_RECOMMENDATION"),),
}


def is_advisory(record: Mapping[str, object]) -> bool:
    """Whether a record is from the advisory evaluator, so it authorizes nothing."""
    return record.get("evaluator_version") == ADVISORY_EVALUATOR


def policy_of(mode: str) -> str:
    """The `policy_id` of a mode's records."""
    return f"advisory.{mode}"


ADVISORY_POLICIES: Final = frozenset(map(policy_of, ADVISORY_MODES))
"""The `policy_id` values of advisory records. A rulebook may also have one of them as its id."""


def advised(mode: object, answer: object) -> Advised | None:
    """The meaning of an answer in a mode, or None if the mode has no such answer."""
    if not isinstance(mode, str) or not isinstance(answer, dict):
        return None
    if mode == "single":
        said = answer.get("answer")
        return _SINGLE.get(said) if isinstance(said, str) else None
    found = _BY_MODE.get(mode)
    return found[0] if found else None


def advised_by_code(policy_id: str, reason_code: str) -> Advised | None:
    """The meaning of a record's erased answer, from its reason code; None if no mode has that code."""
    for said in _BY_MODE.get(policy_id.removeprefix("advisory."), ()):
        if said.reason_code == reason_code:
            return said
    return None


def advisory_evidence(reason_code: str, answer_hash: object) -> list[str]:
    """The evidence: the reason code and H of the answer."""
    return [reason_code, f"answer:{answer_hash}"]


def advisory_sources(policy: Mapping[str, object], evaluation_hash: object, answer_hash: object) -> Sequence[Source]:
    """The sources of an advisory record.

    Args:
        policy: {id, version, hash} of the record's policy bundle.
        evaluation_hash: H of its evaluation.
        answer_hash: H of the answer inside the evaluation.
    """
    return [
        {"id": f"prompt:{policy['id']}@{policy['version']}", "type": "prompt", "snapshot_hash": str(policy["hash"])},
        {"id": "evaluation", "type": "evaluation", "snapshot_hash": str(evaluation_hash)},
        {"id": ANSWER_SOURCE, "type": "advisory", "snapshot_hash": str(answer_hash)},
    ]


ANSWER_SOURCE: Final = "upstream_answer"
"""The id of the source with H of the answer."""

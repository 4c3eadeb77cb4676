"""What an advisory record derives from an upstream's answer: its verdict, its evidence, its sources.

    evaluation = {"mode": "single", "model": "example-model", "answer": {"answer": "yes", "reason": "..."}}
    advised(evaluation)      # verdict yes, word approved, reason code ADVISORY_YES

Making such a record and verifying one use these same functions; docs/wire-format.md, "Advisory records".
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
"""The action of every advisory record, whatever its verdict."""

ADVISORY_VERDICT: Final = "ADVISORY"
"""The application verdict of every advisory record: no rulebook gave one."""

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
"""The members that no advisory record has."""


class Advised(NamedTuple):
    """What an answer says.

    Attributes:
        verdict: yes, no or review.
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
    """Whether a record names the advisory evaluator; what it authorizes is then nothing."""
    return record.get("evaluator_version") == ADVISORY_EVALUATOR


def policy_of(mode: str) -> str:
    """The policy_id of a mode's records."""
    return f"advisory.{mode}"


ADVISORY_POLICIES: Final = frozenset(map(policy_of, ADVISORY_MODES))
"""The policy_ids of advisory records. A rulebook may have one of them as its id: it is no advice for that."""


def advised(mode: object, answer: object) -> Advised | None:
    """What an answer in a mode says; None where it is none that the mode has."""
    if not isinstance(mode, str) or not isinstance(answer, dict):
        return None
    if mode == "single":
        said = answer.get("answer")
        return _SINGLE.get(said) if isinstance(said, str) else None
    found = _BY_MODE.get(mode)
    return found[0] if found else None


def advised_by_code(policy_id: str, reason_code: str) -> Advised | None:
    """What the erased answer of a record said, as far as its reason code tells; None where no mode has that code."""
    for said in _BY_MODE.get(policy_id.removeprefix("advisory."), ()):
        if said.reason_code == reason_code:
            return said
    return None


def advisory_evidence(reason_code: str, answer_hash: object) -> list[str]:
    """The evidence: the reason code, and H of the upstream's answer."""
    return [reason_code, f"answer:{answer_hash}"]


def advisory_sources(policy: Mapping[str, object], evaluation_hash: object, answer_hash: object) -> Sequence[Source]:
    """The sources of an advisory record.

    Args:
        policy: The record, or its policy_bundle's {id, version, hash}.
        evaluation_hash: H of its evaluation.
        answer_hash: H of the upstream's answer, which stands in the evaluation.
    """
    return [
        {"id": f"prompt:{policy['id']}@{policy['version']}", "type": "prompt", "snapshot_hash": str(policy["hash"])},
        {"id": "evaluation", "type": "evaluation", "snapshot_hash": str(evaluation_hash)},
        {"id": ANSWER_SOURCE, "type": "advisory", "snapshot_hash": str(answer_hash)},
    ]


ANSWER_SOURCE: Final = "upstream_answer"
"""The id of the source that holds H of the upstream's answer."""

"""The manifest of a migration, `rulebook_migration_v1`: the candidate, the expected drift, and the approval.

    manifest = read_manifest(parse_document(path.read_bytes()))
    manifest.rulebooks        # (NamedRulebook("pricing_exception", "rulebooks/pricing_exception.json"),)
    manifest.expected.fields  # {"rulebook", "attestation_hash"}

`schemas/rulebook-migration-v1.schema.json` has the shape. This module adds the rules that a schema cannot express.
`folder` reads the files that a manifest lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, NotRequired, TypedDict, cast

from gate.adapters.registry import find_adapter, registered
from gate.encoding.canonical import content_hash
from gate.encoding.shapes import MAX_ERRORS, shape
from gate.errors import FieldError, MaterialRefused
from gate.labels import EVALUATOR

EVALUATORS: Final = (EVALUATOR,)
"""The evaluators of this release."""

REQUIRES_APPROVAL: Final = "requires_approval"
"""The policy of drift that is expected and has to be approved."""

APPROVED: Final = "approved"


class NamedRulebook(NamedTuple):
    """A rulebook that a candidate names.

    Attributes:
        rulebook_id: Its id.
        path: Its file, relative to the folder of the manifest.
    """

    rulebook_id: str
    path: str


class NamedAdapter(NamedTuple):
    """A trusted adapter that a candidate or a case names.

    Attributes:
        adapter_id: Its id.
        version: Its exact version.
        manifest_hash: H of its manifest.
    """

    adapter_id: str
    version: str
    manifest_hash: str


@dataclass(frozen=True, slots=True)
class ExpectedDrift:
    """The drift that a manifest expects.

    Attributes:
        policy: none or requires_approval.
        fixtures: Every fixture that has to drift.
        fields: Every field that has to drift in one of them.
    """

    policy: str
    fixtures: frozenset[str] = frozenset()
    fields: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Approval:
    """What a manifest says of its approval.

    Attributes:
        status: not_required, pending, approved or rejected.
        approved_by: Who approved it; None where nobody is named.
        approved_at: When, with a time zone; None where no time is named.
        notes: What the approver says about it; None where that is nothing.
    """

    status: str
    approved_by: str | None
    approved_at: str | None
    notes: str | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """A migration's manifest.

    Attributes:
        body: The manifest as it was sent.
        hash: H(body).
        migration_id: The migration's name.
        status: proposed, approved, rejected or superseded.
        compatibility_class: evaluator, adapter, rulebook, public_response or mixed.
        summary: What changes and why; None where the author does not say.
        corpus: The file of a corpus' index, relative to the manifest's folder; None for the published corpus.
        fixtures: The fixtures that the dry run looks at, in the author's order; None for all.
        evaluator_version: The evaluator that the candidate names; None where it names none.
        rulebooks: The rulebooks that the candidate names, by distinct ids.
        adapters: The adapters that the candidate names, by distinct ids.
        expected: The drift that is expected.
        approval: What it says of its approval.
    """

    body: Mapping[str, object]
    hash: str
    migration_id: str
    status: str
    compatibility_class: str
    summary: str | None
    corpus: str | None
    fixtures: tuple[str, ...] | None
    evaluator_version: str | None
    rulebooks: tuple[NamedRulebook, ...]
    adapters: tuple[NamedAdapter, ...]
    expected: ExpectedDrift
    approval: Approval

    @property
    def approved(self) -> bool:
        """Whether the manifest says that the migration is approved."""
        return self.status == APPROVED == self.approval.status


class _Rulebook(TypedDict):
    rulebook_id: str
    path: str


class _Adapter(TypedDict):
    adapter_id: str
    version: str
    manifest_hash: str


class _Candidate(TypedDict):
    evaluator_version: NotRequired[str]
    rulebooks: NotRequired[list[_Rulebook]]
    adapters: NotRequired[list[_Adapter]]


class _ExpectedDrift(TypedDict):
    policy: str
    fixtures: NotRequired[list[str]]
    fields: NotRequired[list[str]]


class _Approval(TypedDict):
    status: str
    approved_by: NotRequired[str | None]
    approved_at: NotRequired[str | None]
    notes: NotRequired[str | None]


class _Body(TypedDict):
    migration_id: str
    status: str
    compatibility_class: str
    summary: NotRequired[str]
    corpus: NotRequired[str]
    fixtures: NotRequired[list[str]]
    candidate: _Candidate
    expected_drift: _ExpectedDrift
    approval: _Approval


def read_manifest(body: object) -> Manifest:
    """Reads a manifest.

    Args:
        body: The parsed JSON value.

    Raises:
        MaterialRefused: `MIGRATION_INVALID`, with an error for each member at fault.
    """
    errors = shape("rulebook-migration-v1").errors(body)
    # What a schema cannot say needs the shape, so it is looked at only where there is one.
    if not errors:
        valid = cast("_Body", body)
        errors = [*_candidate_faults(valid), *_drift_faults(valid), *_approval_faults(valid)][:MAX_ERRORS]
    if errors:
        raise invalid(errors)
    candidate, drift, approval = valid["candidate"], valid["expected_drift"], valid["approval"]
    return Manifest(
        body=cast("Mapping[str, object]", body),
        hash=content_hash(body),
        migration_id=valid["migration_id"],
        status=valid["status"],
        compatibility_class=valid["compatibility_class"],
        summary=valid.get("summary"),
        corpus=valid.get("corpus"),
        fixtures=tuple(valid["fixtures"]) if "fixtures" in valid else None,
        evaluator_version=candidate.get("evaluator_version"),
        rulebooks=tuple(NamedRulebook(**of) for of in candidate.get("rulebooks", ())),
        adapters=tuple(NamedAdapter(**of) for of in candidate.get("adapters", ())),
        expected=ExpectedDrift(
            drift["policy"], frozenset(drift.get("fixtures", ())), frozenset(drift.get("fields", ()))
        ),
        approval=Approval(
            approval["status"], approval.get("approved_by"), approval.get("approved_at"), approval.get("notes")
        ),
    )


def invalid(errors: Sequence[FieldError]) -> MaterialRefused:
    """The refusal of a manifest, or of what it names, with the members at fault."""
    places = f"{len(errors)} {'place' if len(errors) == 1 else 'places'}"
    return MaterialRefused(
        "MIGRATION_INVALID", f"The manifest is unusable in {places}. Correct each field listed.", errors
    )


def _candidate_faults(body: _Body) -> Iterator[FieldError]:
    candidate = body["candidate"]
    named = [
        kind
        for kind, names in (
            ("evaluator", "evaluator_version" in candidate),
            ("adapter", bool(candidate.get("adapters"))),
            ("rulebook", bool(candidate.get("rulebooks"))),
        )
        if names
    ]
    if not named:
        message = "It lists no candidate. Add rulebooks, adapters or evaluator_version."
        yield FieldError("candidate", "empty", message)
    else:
        yield from _class_faults(body["compatibility_class"], named)
    yield from _evaluator_faults(candidate)
    for index, adapter in enumerate(candidate.get("adapters", ())):
        yield from _adapter_faults(adapter, f"candidate.adapters[{index}]")
    for kind, ids in (
        ("rulebook", [of["rulebook_id"] for of in candidate.get("rulebooks", ())]),
        ("adapter", [of["adapter_id"] for of in candidate.get("adapters", ())]),
    ):
        for index, id_ in enumerate(ids):
            if (first := ids.index(id_)) != index:
                message = f"candidate.{kind}s[{first}] has the same id. List each {kind} once."
                yield FieldError(f"candidate.{kind}s[{index}].{kind}_id", "duplicate", message)


def _class_faults(stated: str, named: Sequence[str]) -> Iterator[FieldError]:
    fitting = "mixed" if len(named) > 1 else named[0]
    # Any change can be one of what callers read.
    if stated not in (fitting, "public_response"):
        message = f"The candidate changes {_listed(named)}, so it must be {fitting} or public_response."
        yield FieldError("compatibility_class", "class", message)


def _listed(named: Sequence[str]) -> str:
    words = [{"evaluator": "the evaluator", "adapter": "adapters", "rulebook": "rulebooks"}[kind] for kind in named]
    return " and ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])} and {words[-1]}"


def _evaluator_faults(candidate: _Candidate) -> Iterator[FieldError]:
    version = candidate.get("evaluator_version")
    if version is not None and version not in EVALUATORS:
        message = f"This release has no evaluator of that version; it has {', '.join(EVALUATORS)}."
        yield FieldError("candidate.evaluator_version", "unknown", message)


def _adapter_faults(adapter: _Adapter, path: str) -> Iterator[FieldError]:
    found = find_adapter(registered(), adapter["adapter_id"], adapter["version"])
    if found is None:
        there = ", ".join(of.name for of in registered())
        message = f"This release has no adapter {adapter['adapter_id']}@{adapter['version']}; it has {there}."
        yield FieldError(path, "unknown", message)
    elif found.manifest_hash != adapter["manifest_hash"]:
        message = f"This release registers {found.name} with the manifest_hash {found.manifest_hash}."
        yield FieldError(f"{path}.manifest_hash", "hash", message)


def _drift_faults(body: _Body) -> Iterator[FieldError]:
    drift = body["expected_drift"]
    if drift["policy"] != REQUIRES_APPROVAL:
        for name, listed in (("fixtures", drift.get("fixtures")), ("fields", drift.get("fields"))):
            if listed:
                message = f"The policy none expects no drift. Remove it, or set the policy to {REQUIRES_APPROVAL}."
                yield FieldError(f"expected_drift.{name}", "not_expected", message)
    elif body["approval"]["status"] == "not_required":
        message = f"expected_drift.policy is {REQUIRES_APPROVAL}, so it must be pending, approved or rejected."
        yield FieldError("approval.status", "approval", message)


def _approval_faults(body: _Body) -> Iterator[FieldError]:
    status, approval = body["status"], body["approval"]
    if APPROVED not in (status, approval["status"]):
        return
    if approval["status"] != APPROVED:
        message = "The migration's status is approved, so this must be approved, too."
        yield FieldError("approval.status", "approval", message)
    # An approved migration may have been superseded since.
    elif status not in (APPROVED, "superseded"):
        message = "approval.status is approved, so this must be approved or superseded."
        yield FieldError("status", "approval", message)
    for name, value in (("approved_by", approval.get("approved_by")), ("approved_at", approval.get("approved_at"))):
        if value is None:
            message = "It is missing. An approval states who approved and when."
            yield FieldError(f"approval.{name}", "required", message)

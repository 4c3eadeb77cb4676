"""The requirements for users who act on migrations, and for those migrations. Each refusal says what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gate.decisions.migrations.documents import is_evidence
from gate.encoding.canonical import content_hash
from gate.errors import AccessForbidden, OperatorError
from gate.ledger.access.authority import Scope
from gate.ledger.access.users import Act, User, may
from gate.ledger.stores.store import has_utf8
from gate.migration.approval import find_gate_faults
from gate.migration.standing import Standing
from gate.records.changes import MAX_NOTE, Candidate


def require_act(user: User, scope: Scope, *acts: Act, code: str = "MIGRATION_FORBIDDEN") -> None:
    """Requires that a user may do one of some acts in a scope.

    Raises:
        AccessForbidden: With the code.
    """
    role = user.roles.get(scope.scope_id)
    if not any(may(role, act) for act in acts):
        needed = {"draft": "author", "approve": "approver"}
        roles = " or ".join(needed[act] for act in acts if act in needed)
        has = "no role" if role is None else f"the role {role}"
        instead = "" if role is None else ", which replaces the current role"
        grant = f"`gate users grant {user.name} --scope {scope.name} --role {needed[acts[0]]}`"
        raise AccessForbidden(
            code,
            f"{user.name} has {has} in the scope {scope.name}, but this needs the role {roles}. An operator can "
            f"assign it with {grant}{instead}.",
        )


def require_another(user: User, found: Standing) -> None:
    """Requires that a user is not the one who proposed a migration."""
    if found.author == user.name:
        raise AccessForbidden(
            "MIGRATION_FORBIDDEN",
            f"{user.name} proposed the migration {found.migration_id}, so {user.name} cannot approve it. Ask "
            "another user with the role approver.",
        )


def require_shadowable(found: Standing) -> None:
    """Requires that a migration may still be applied, and has candidates that decide."""
    if found.state not in ("proposed", "approved"):
        raise OperatorError(
            "MIGRATION_NOT_OPEN",
            f"The migration {found.migration_id} was {found.sentence()}, so it has no shadow. Only a proposed or "
            "approved migration can have one.",
        )
    if not found.proposed["candidates"]:
        raise OperatorError(
            "MIGRATION_WITHOUT_ROUTE",
            f"The migration {found.migration_id} lists no rulebook, so no candidate can decide requests again.",
        )


def require_note(note: str) -> None:
    if len(note) > MAX_NOTE or not has_utf8(note):
        raise OperatorError(
            "NOTE_INVALID", f"The note must have at most {MAX_NOTE} characters in UTF-8. Write a shorter note."
        )


def require_proposed(manifest: Mapping[str, Any]) -> None:
    if manifest["status"] != "proposed":
        raise OperatorError(
            "MIGRATION_STATUS_INVALID",
            f"The manifest of {manifest['migration_id']} has the status {manifest['status']}. Set it to "
            "proposed. Approve it with `gate migrate approve`, not in the file.",
        )


def require_about(evidence: Mapping[str, Any], manifest: Mapping[str, Any], candidates: Sequence[Candidate]) -> None:
    """Requires that evidence is about a manifest and its candidates."""
    about = [{"rulebook_id": of["rulebook_id"], **of["candidate"]} for of in evidence["rulebooks"]]
    if (
        not is_evidence(evidence, evidence["evidence_hash"])
        or evidence["manifest_hash"] != content_hash(manifest)
        or sorted(about, key=lambda of: of["rulebook_id"]) != list(candidates)
    ):
        raise OperatorError(
            "EVIDENCE_INVALID",
            f"The evidence does not match the manifest of {manifest['migration_id']} and its candidates. Create "
            "the evidence again.",
        )


def require_gate(evidence: Mapping[str, Any], migration_id: str) -> None:
    if faults := find_gate_faults(evidence):
        raise OperatorError(
            "MIGRATION_GATE_FAILED",
            f"The migration {migration_id} does not pass the gate. {' '.join(faults[:5])} Fix the candidate or "
            "the manifest, and propose the migration again.",
        )


def no_shadow(migration_id: str, scope: str) -> OperatorError:
    """The error where a migration's shadow does not run."""
    return OperatorError(
        "SHADOW_NOT_RUNNING",
        f"No shadow of {migration_id} is running. While the migration is proposed or approved, `gate migrate "
        f"shadow start {migration_id} --scope {scope}` starts one.",
    )

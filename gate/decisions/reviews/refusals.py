"""What refuses a resolution: the user may not resolve, the decision is not held, or it was resolved before."""

from __future__ import annotations

from gate.errors import AccessForbidden, ReviewConflict
from gate.ledger.access.authority import Scope
from gate.ledger.access.users import User, may
from gate.ledger.reviews import ReviewRow
from gate.records.documents import Cited


def require_approver(user: User, scope: Scope) -> None:
    """Requires that a user may resolve the held decisions of a scope.

    Raises:
        AccessForbidden: `REVIEW_FORBIDDEN`.
    """
    role = user.roles.get(scope.scope_id)
    if not may(role, "approve"):
        has = "no role" if role is None else f"the role {role}"
        raise AccessForbidden(
            "REVIEW_FORBIDDEN",
            f"{user.name} has {has} in the scope {scope.name}, but only an approver can grant or refuse a held "
            f"action. An operator can assign the role with `gate users grant {user.name} --scope {scope.name} "
            "--role approver`.",
        )


def not_held(record: Cited) -> ReviewConflict:
    """`SVC_RESOLUTION_NOT_HELD`: a decision that nobody holds."""
    why = (
        "is advisory, so nobody can grant it"
        if record["verdict"] == "review"
        else f"has the verdict {record['verdict']}, but only a review can be resolved"
    )
    return ReviewConflict(
        "SVC_RESOLUTION_NOT_HELD",
        f"The decision {record['decision_id']} {why}. Nothing was recorded.",
        details={"decision_id": record["decision_id"]},
    )


def final(review: ReviewRow | None) -> ReviewConflict:
    """`SVC_RESOLUTION_FINAL`: a review that was resolved before; None where it cannot be found any more."""
    state, at = ("resolved", None) if review is None else (review.state, review.resolved_at)
    done = {"executed": "was granted, and executed since", "expired": "expired"}.get(state, f"was {state}")
    return ReviewConflict(
        "SVC_RESOLUTION_FINAL",
        f"The review {done}{f' at {at}' if at else ''}, and a resolution is final. Read it with GET "
        f"/api/decision/{'{decision_id}' if review is None else review.decision_id}/resolution.",
        details={"review_state": state, "resolved_at": at},
    )

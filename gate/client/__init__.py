"""The client of the decision gate, and a guard that lets an action happen only on a verified yes, and once.

from gate.client import Blocked, Client, HeldForReview

client = Client()  # from GATE_URL, GATE_API_KEY_FILE, GATE_KEY_REGISTRY and GATE_INTENTS

with client.guard("refund_policy@2026-09-01", facts, action="issue_refund", target=("shop", "order-77")) as permit:
    payments.refund("order-77")
permit.outcome("succeeded", metrics={"refund_eur": 49.9})
"""

from typing import TYPE_CHECKING, Any

from gate.client import operations
from gate.client.client import Client
from gate.client.errors import (
    AlreadyStarted,
    AnswerUnusable,
    ApiError,
    Blocked,
    Conflict,
    Forbidden,
    GateUnavailable,
    HeldForReview,
    LimitReached,
    NotFound,
    NotPermitted,
    Refused,
    ServiceFailed,
    StoreUnavailable,
    Unauthorized,
    Undecidable,
    Unreachable,
)
from gate.client.guard.blocks import AsyncGuard, Guard
from gate.client.guard.delivery import Delivery
from gate.client.guard.entering import Recovery
from gate.client.guard.permit import AsyncPermit, Permit
from gate.client.guard.proposal import Target
from gate.client.store import Intent, Report, State, Store
from gate.client.transport.calls import Answer, Call
from gate.errors import FieldError, GateError, MaterialRefused, OperatorError, RequestRefused

# Who works in threads is spared asyncio, who guards nothing SQLite, and who only imports the client the cryptography.
if TYPE_CHECKING:
    from gate.client.async_client import AsyncClient
    from gate.client.store import SqliteStore
    from gate.verify import Trust, Verification

__all__ = [
    "AlreadyStarted",
    "Answer",
    "AnswerUnusable",
    "ApiError",
    "AsyncClient",
    "AsyncGuard",
    "AsyncPermit",
    "Blocked",
    "Call",
    "Client",
    "Conflict",
    "Delivery",
    "FieldError",
    "Forbidden",
    "GateError",
    "GateUnavailable",
    "Guard",
    "HeldForReview",
    "Intent",
    "LimitReached",
    "MaterialRefused",
    "NotFound",
    "NotPermitted",
    "OperatorError",
    "Permit",
    "Recovery",
    "Refused",
    "Report",
    "RequestRefused",
    "ServiceFailed",
    "SqliteStore",
    "State",
    "Store",
    "StoreUnavailable",
    "Target",
    "Trust",
    "Unauthorized",
    "Undecidable",
    "Unreachable",
    "Verification",
    "operations",
]


def __getattr__(name: str) -> Any:
    if name == "AsyncClient":
        from gate.client.async_client import AsyncClient

        return AsyncClient
    if name == "SqliteStore":
        from gate.client.store import SqliteStore

        return SqliteStore
    if name in ("Trust", "Verification"):
        from gate import verify

        return getattr(verify, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""Which page of docs/reference/errors has which error code of the service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from api.errors import codes


@dataclass(frozen=True, slots=True)
class Family:
    """The codes of one page.

    Attributes:
        page: Its file.
        title: What its errors have in common.
        about: What a caller does about them.
        statuses: Their HTTP statuses.
    """

    page: str
    title: str
    about: str
    statuses: tuple[int, ...]


FAMILIES: Final = (
    Family(
        "requests.md",
        "Errors of unreadable requests",
        "The service could not read the request. Correct it before you send it again.",
        (400, 405, 406, 413, 415),
    ),
    Family(
        "access.md",
        "Errors of access and limits",
        "The key, the token, or the origin does not allow the request, or a limit is used up.",
        (401, 403, 429),
    ),
    Family(
        "conflicts.md",
        "Errors of missing and conflicting resources",
        "The service does not have what the request asks for, or has something else under the same key.",
        (404, 409),
    ),
    Family(
        "content.md",
        "Errors of invalid content",
        "The service could read the request, but not its content. Correct it before you send it again.",
        (422,),
    ),
    Family(
        "failures.md",
        "Errors of the service",
        "The service, an adapter, or an upstream failed. The request can be right: hold the action and retry.",
        (500, 502, 503),
    ),
)
_PAGES: Final = {status: family.page for family in FAMILIES for status in family.statuses}


def target_of(name: str) -> str:
    """The page and the anchor of an error code, below docs/reference/errors."""
    return f"{_PAGES[codes()[name][0]]}#{name.lower()}"

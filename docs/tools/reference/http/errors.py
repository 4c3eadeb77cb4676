"""The reference pages of the service's error codes: an index, and a page for each family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from api.errors import codes
from docs.tools.reference.http.api import EVERYWHERE, linked
from docs.tools.reference.http.families import FAMILIES, Family, target_of
from docs.tools.reference.http.fields import read
from docs.tools.reference.http.operations import operations
from docs.tools.reference.markdown import anchor, choice, code, link, page, table

SOURCE: Final = "schemas/error-codes.json"
_USUAL: Final = frozenset({"c", "v", "error", "message", "request_id"})
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_MANY: Final = 12
"""More endpoints than this are counted, and not listed."""
_ORDER: Final = """\
## Order of checks

If a decide request has several faults, the answer reports the first one in this order:

1. 404 `SVC_API_NOT_FOUND`, 405 `SVC_API_METHOD_NOT_ALLOWED`.
2. 413 `SVC_API_PAYLOAD_TOO_LARGE`, 415 `SVC_API_MEDIA_TYPE_UNSUPPORTED`.
3. 401 or 403 `SVC_API_UNAUTHORIZED`.
4. 429 `SVC_API_RATE_LIMITED`.
5. 400 `SVC_API_JSON_INVALID`.
6. 422 `SVC_API_REQUEST_INVALID`: the headers for view and idempotency key.
7. A used idempotency key: its record, or 409 `SVC_API_IDEMPOTENCY_CONFLICT`.
8. 422 `RULEBOOK_BINDING_MODE_UNSUPPORTED`.
9. 422 `RULEBOOK_OUTPUT_MATERIAL_FORBIDDEN`.
10. 422 `SVC_API_REQUEST_INVALID`: the body.
11. 422 `RULEBOOK_BINDING_MODE_CONFLICT`.
12. 422 `TRUSTED_ADAPTER_INPUT_CONFLICT`.
13. In an advisory mode, instead of 14 to 16: 403, 422 `SVC_API_REQUEST_INVALID` for the question, 503
    `SVC_ADVISORY_UNCONFIGURED`, then 503 `SVC_ADVISORY_BUSY`.
14. 422 `RULEBOOK_INVALID` or `RULEBOOK_REF_UNKNOWN`.
15. 422 `TRUSTED_ADAPTER_INVALID`, `TRUSTED_ADAPTER_NOT_REGISTERED`, `TRUSTED_ADAPTER_MANIFEST_MISMATCH`,
    `TRUSTED_ADAPTER_INPUT_INVALID`.
16. A new [rulebook](../../glossary.md#rulebook): 403 without the access `register`, 503 `SVC_SIGNING_UNAVAILABLE`, 409
    `RULEBOOK_VERSION_CONFLICT`. A registered one: 409 if its facts come from another source.
17. 502 from an adapter, or `SVC_ADVISORY_UPSTREAM_FAILED`. Then 503 `SVC_SIGNING_UNAVAILABLE`.
18. 429 `SVC_API_MONTHLY_CAP_EXCEEDED` (in an advisory mode after the 403 of 13), or 403 if the key has since lost its
    access.
19. 503 `SVC_STORAGE_UNAVAILABLE`.

For reports: 1 to 3, 5, 404 `SVC_DECISION_NOT_FOUND`, 6, 7, the body, 422 `SVC_..._RECORD_MISMATCH`, 403, 19.
"""
_TITLES: Final = {
    400: "The request cannot be read",
    401: "The key or token is missing, unknown, or not allowed",
    403: "The origin is not allowed",
    404: "Not found",
    405: "Wrong method",
    406: "Not acceptable",
    409: "The request contradicts an earlier one",
    413: "Too large",
    415: "Wrong media type",
    422: "The content of the request is wrong",
    429: "Too many requests",
    500: "Internal error",
    502: "An adapter or upstream failed",
    503: "Temporarily unavailable",
}


def pages() -> dict[str, str]:
    """The index, and a page for each family."""
    groups: dict[int, list[str]] = {}
    for name in sorted(codes(), key=lambda name: codes()[name][0]):
        groups.setdefault(codes()[name][0], []).append(name)
    return {"errors/README.md": _index(groups)} | {
        f"errors/{family.page}": _page(family, groups) for family in FAMILIES
    }


def _index(groups: Mapping[int, list[str]]) -> str:
    return page(
        "# Error codes",
        "This page lists every error code of the HTTP API. Each code links to its meaning and what to do about it.",
        "An error response has the fields of [Error](../formats/error.md). It never has a verdict: without a decision, "
        "hold the action. `v` is the kind of error, `error` is the code, and `message` is for people and may change. "
        "Errors of the `gate` command are under [Command errors](../command-errors/README.md).",
        table(("status", "code", "`v`"), (_row(name) for names in groups.values() for name in names)),
        _ORDER,
    )


def _page(family: Family, groups: Mapping[int, list[str]]) -> str:
    return page(
        f"# {family.title}",
        f"{family.about} [Error codes](README.md) lists all codes and the fields of an error.",
        *(block for status in family.statuses for block in _group(status, groups[status])),
    )


def _row(name: str) -> tuple[str, str, str]:
    return _statuses(name), link(code(name), target_of(name)), code(codes()[name][1])


def _statuses(name: str) -> str:
    status = codes()[name][0]
    return f"{status} or {_FORBIDDEN}" if "forbidden" in _catalogue()[name] else str(status)


def _group(status: int, names: list[str]) -> Iterator[str]:
    yield f"## {_shown(status)}: {_TITLES[status]}"
    shown: dict[tuple[str, ...], str] = {}
    for name in names:
        entry = _catalogue()[name]
        same = shown.setdefault(_wording(entry), name)
        yield f"### `{name}`"
        yield f"Status {_statuses(name)}, `v` is `{codes()[name][1]}`.{_answered_by(name)}"
        yield f"The same as [`{same}`](#{same.lower()})." if same != name else ""
        yield "" if same != name else page(*_told(entry))
        yield _extra(entry)


def _shown(status: int) -> str:
    """A status in a heading. The codes of 401 are those of keys that may not do this as well."""
    return f"{status} and {_FORBIDDEN}" if status == _UNAUTHORIZED else str(status)


def _wording(entry: Mapping[str, Any]) -> tuple[str, ...]:
    forbidden = entry.get("forbidden", {})
    return entry["meaning"], entry["action"], forbidden.get("meaning", ""), forbidden.get("action", "")


def _told(entry: Mapping[str, Any]) -> Iterator[str]:
    """What a code means and what to do, in general and where it means something else."""
    forbidden = "forbidden" in entry
    yield linked(f"{'401: ' if forbidden else ''}{entry['meaning']} {entry['action']}", api="../api/", errors="")
    for variant, words in (("forbidden", "403"), ("token", "With the metrics token"), ("address", "Without a key")):
        if variant in entry:
            other = entry[variant]
            yield linked(
                f"{words}: {other['meaning']} {other.get('action', entry['action'])}", api="../api/", errors=""
            )


def _extra(entry: Mapping[str, Any]) -> str:
    variants = (entry, *(entry[variant] for variant in ("forbidden", "token", "address") if variant in entry))
    names = dict.fromkeys(name for each in variants for name in each["example"] if name not in _USUAL)
    return f"Extra fields: {choice([code(name) for name in names], 'and')}." if names else ""


def _answered_by(name: str) -> str:
    if name in EVERYWHERE:
        return " Every endpoint can return it."
    keys = [key for key, each in operations().items() if name in each.written["x-error-codes"]]
    if not keys or len(keys) > _MANY:
        return f" {len(keys)} endpoints return it." if keys else ""
    links = [link(code(key), f"../api/{operations()[key].page}#{anchor(key)}") for key in keys]
    return f" Returned by {choice(links, 'and')}."


@cache
def _catalogue() -> Mapping[str, Mapping[str, Any]]:
    return dict(read("error-codes.json"))

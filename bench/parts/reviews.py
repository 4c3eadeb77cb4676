"""The cost of a page of a long queue of held decisions, compared with the same page of a short queue.

The reviews after the first page are only rows of the tables `reviews` and `decisions`, because nothing reads their
records. The gate made the decisions on the page, so every record is read and checked against its hash.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from sqlalchemy import insert

from api.app import create_app
from api.http.logs import open_log
from bench.disk import scratch
from bench.lakes import goal_lines, judged
from bench.measure import Mismatch, Spread, alternate, ratio, spread
from bench.samples import decide_request
from bench.tables import table
from gate.clock import new_id, utc_now
from gate.encoding.strict_json import parse
from gate.ids import timestamp
from gate.instance.instance import Instance, create_instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import FULL_ACCESS
from gate.ledger.chain.reviews import HELD, Terms
from gate.ledger.tables import decisions, reviews

_MANY: Final = 1_000_000
_QUICK_MANY: Final = 2_000
_PAGE: Final = 20
_ROUNDS: Final = 41
_QUICK_ROUNDS: Final = 3
_BAR_MS: Final = 20.0
_AT_ONCE: Final = 10_000
_OWNERS: Final = 5

_QUERIES: Final = {
    "oldest": "state=held&order=oldest",
    "owner": "state=held&order=oldest&owner=desk+0",
    "age": "state=held&order=oldest&min_age=0&policy_id=pricing_exception",
}


def run(*, quick: bool) -> dict[str, Any]:
    """Asks for the first page of a short queue and of a long one in turn, by HTTP in this process.

    Raises:
        Mismatch: A page does not hold what it has to.
    """
    many, rounds = (_QUICK_MANY, _QUICK_ROUNDS) if quick else (_MANY, _ROUNDS)
    with scratch() as directory:
        pages = {}
        for name, held in (("few", 0), ("many", many)):
            instance, key = _queue(directory / name, held)
            client = create_app(instance, log=open_log(stream=BytesIO())).test_client()
            for query, text in _QUERIES.items():
                pages[f"{name} {query}"] = partial(_page, client, key, text)
        for page in pages.values():
            page()
        taken = alternate(pages, rounds)
    milliseconds = {name: spread(found).to_dict("ms") for name, found in taken.items()}
    against = {query: ratio(taken[f"many {query}"], taken[f"few {query}"]).to_dict() for query in _QUERIES}
    slowest = max(milliseconds[f"many {query}"]["median_ms"] for query in _QUERIES)
    return {
        "held": many,
        "page": _PAGE,
        "rounds": rounds,
        "pages": milliseconds,
        "against_few": against,
        "goals": [judged(f"first page of {many:,} held decisions, the slowest", slowest, _BAR_MS, unit="ms")],
    }


def show(results: Mapping[str, Any]) -> str:
    """The results as text."""
    rows = [[name, *Spread.from_dict(found, "ms").cells()] for name, found in results["pages"].items()]
    rows += [
        [f"{query}: many against few", *Spread.from_dict(found).cells()]
        for query, found in results["against_few"].items()
    ]
    title = f"The first {results['page']} of {results['held']:,} held decisions, in ms"
    return "\n".join([title, "", table(["page", "median", "spread"], rows), "", goal_lines(results["goals"])])


def _queue(home: Path, held: int) -> tuple[Instance, str]:
    """An instance with a page of held decisions and so many more behind it, and a key of its scope."""
    create_instance(home)
    instance = open_instance(load_settings(home))
    scope = instance.ledger.directory.create_scope("acme", "unlimited", utc_now())
    key, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())
    authority = instance.ledger.directory.authenticate(key, utc_now())
    instance.ledger.review_owners.set(scope, "", "", Terms("desk 0", 86_400), utc_now())
    request = parse(decide_request())
    request["context"]["inputs"] |= {"discount_percent": 40, "margin_percent": 22}
    gate = instance.gate()
    for _ in range(_PAGE + 1):
        record = gate.decide(authority, request, request_id="req_1").record
        if record["verdict"] != "review":
            raise Mismatch("The sample decision is not held.")
    now = timestamp(utc_now())
    with instance.ledger.store.write() as connection:
        for first in range(0, held, _AT_ONCE):
            numbers = range(first, min(held, first + _AT_ONCE))
            position = _PAGE + 2
            shared = {"scope_id": scope.scope_id, "policy_id": record["policy_id"], "created_at": now}
            connection.execute(
                insert(decisions),
                [
                    {
                        **shared,
                        "position": position + number,
                        "verdict": "review",
                        "policy_version": record["policy_version"],
                        "reason_code": record["reason_code"],
                        "target_object_id": f"deal-{number}",
                    }
                    for number in numbers
                ],
            )
            connection.execute(
                insert(reviews),
                [
                    {
                        **shared,
                        "decision_id": new_id("dec", utc_now()),
                        "position": position + number,
                        "state": HELD,
                        "owner": f"desk {number % _OWNERS}",
                        "action": record["action"],
                        "due_at": now,
                        "grant_seconds": 60,
                    }
                    for number in numbers
                ],
            )
    return instance, key


def _page(client: Any, key: str, query: str) -> float:
    """How many milliseconds the first page takes."""
    started = perf_counter()
    answer = client.get(f"/api/decisions?{query}&limit={_PAGE}", headers={"x-api-key": key})
    taken = 1000 * (perf_counter() - started)
    body = answer.get_json()
    if answer.status_code != 200 or body["count"] != _PAGE or body["next_cursor"] is None:
        raise Mismatch(f"{query} answered {answer.status_code} with {body.get('count')} decisions.")
    return taken

"""Tools of the Model Context Protocol over HTTP.

A policy question is compared with a bare JSON route, and `decide` with `POST /api/decide`. The goals are at least 0.5
of the bare route, and at least 0.9 of `POST /api/decide`. All four get the same load in turn. Both decide with an
idempotency key, and return the full record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import repeat
from typing import Any, Final

import orjson

from bench.disk import scratch
from bench.load import KEY
from bench.measure import Spread, ratio
from bench.samples import decide_request
from bench.subjects import (
    CONNECTIONS,
    WORKERS,
    Subject,
    bare,
    create_key,
    gate,
    rates,
    require_records,
    sqlite_url,
    summary,
    summary_rows,
    under_load,
)
from bench.tables import table

_ROUNDS: Final = 7
_SECONDS: Final = 4.0
_QUICK_ROUNDS: Final = 5
_QUICK_SECONDS: Final = 0.5
_SUBJECTS: Final = ("bare", "question", "decide", "decide_over_mcp")
_COMPARED: Final = (("question", "bare", 0.5), ("decide_over_mcp", "decide", 0.9))

# As many as a bench sends; what is measured is the answer, and not its refusal.
_UNLIMITED: Final = "\npublic_requests_per_minute = 1000000\n"


def run(*, quick: bool) -> dict[str, Any]:
    """Puts the routes under the same load in turn.

    Raises:
        Mismatch: An answer was wrong, or the ledger does not hold one record for each decision.
    """
    rounds, seconds = (_QUICK_ROUNDS, _QUICK_SECONDS) if quick else (_ROUNDS, _SECONDS)
    with scratch() as directory, ExitStack() as stack:
        home = directory / "gate"
        key = create_key(home, sqlite_url(home))
        (home / "settings.toml").write_text((home / "settings.toml").read_text() + _UNLIMITED)
        (home / "policies").mkdir()
        (home / "policies" / "refund.json").write_bytes(_table())
        floor = stack.enter_context(bare(directory, workers=WORKERS))
        server = stack.enter_context(gate(home, sqlite_url(home), directory, workers=WORKERS))
        subjects = {
            "bare": Subject(floor, WORKERS, ""),
            "question": Subject(server, WORKERS, "", paths=repeat("/refund/api/mcp"), body=_question()),
            "decide": Subject(server, WORKERS, key),
            "decide_over_mcp": Subject(server, WORKERS, key, paths=repeat("/api/mcp"), body=_decide()),
        }
        taken, answers = under_load(subjects, rounds, seconds)
        require_records(home, sqlite_url(home), answers["decide"] + answers["decide_over_mcp"])
    return {
        "workers": WORKERS,
        "connections": CONNECTIONS,
        "rounds": rounds,
        "round_s": seconds,
        "answers": answers,
        **{name: summary(rounds_) for name, rounds_ in taken.items()},
        **{
            f"{name}/{beside}": {**ratio(rates(taken[name]), rates(taken[beside])).to_dict(), "goal": goal}
            for name, beside, goal in _COMPARED
        },
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as a table."""
    rows = [row for name in _SUBJECTS for row in summary_rows(name, result[name])]
    for name, beside, goal in _COMPARED:
        found = {member: value for member, value in result[f"{name}/{beside}"].items() if member != "goal"}
        rows.append([f"{name}/{beside}, requests/s; goal {goal}", *Spread.from_dict(found).cells(".3f")])
    head = f"Tools: {result['workers']} workers, {result['connections']} connections"
    return f"{head}\n\n{table(['', 'median', 'min..max'], rows)}"


def _question() -> bytes:
    return _call("refund_eligibility", {"vendor": "Example Store", "region": "US", "days_since_purchase": 12})


def _decide() -> bytes:
    return _call("decide", {"request": json.loads(decide_request()), "idempotency_key": KEY.decode()})


def _call(name: str, arguments: Mapping[str, Any]) -> bytes:
    params = {"name": name, "arguments": arguments}
    return orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


def _table() -> bytes:
    entry = {
        "vendor": "example-store",
        "name": "Example Store",
        "region": "*",
        "plan": "*",
        "decision_mode": "deterministic",
        "windows": {"refund_days": 30},
        "source": "https://example.com/refunds",
        "last_verified": datetime.now(UTC).date().isoformat(),
    }
    return orjson.dumps({"policy_table_version": "policy_table_v1", "service": "refund", "entries": [entry]})

"""The page of the demo's scenario, from data/demo/scenario.json: scopes, versions, kinds of requests, and owners."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from docs.tools.reference.markdown import code, link, page, table

SOURCE: Final = "data/demo/scenario.json"

_ENDS: Final = ("succeeded", "partial", "reverted", "failed")
_INTRODUCTION: Final = """\
Which companies, policies, and requests are in the ledger that `gate demo` creates?
{readme} explains how the year is drawn, and describes the incidents."""


def pages() -> dict[str, str]:
    """The one page."""
    root = Path(__file__).parents[4]
    scenario: Mapping[str, Any] = json.loads((root / SOURCE).read_text())
    readme = link("The scenario", "../../data/demo/README.md")
    blocks = [
        "# Scenario of the demo",
        _INTRODUCTION.format(readme=readme),
        "## Scopes",
        table(("scope", "share", "company", "asks for"), _scopes(scenario["scopes"])),
        "## Versions",
        "Each version decides from its day on, in every scope. Day 0 is the first day.",
        table(("policy", "version", "from day", "description"), _versions(scenario)),
        "## Kinds of requests",
        "A request has a kind, drawn by weight. The other columns are the chances of each outcome, if it is executed.",
        *(block for policy_id, policy in scenario["policies"].items() for block in _kinds(policy_id, policy)),
        "## Owners of held decisions",
        table(("policy", "action", "owner", "time limit", "a grant lasts"), _owners(scenario["owners"])),
    ]
    return {"demo.md": page(*blocks)}


def _scopes(scopes: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    for name, scope in scopes.items():
        asks = ", ".join(f"{code(policy_id)} {share} %" for policy_id, share in scope["policies"].items())
        yield code(name), f"{scope['share']} %", scope["company"], asks


def _versions(scenario: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    for policy_id, policy in scenario["policies"].items():
        for version in policy["versions"]:
            yield code(policy_id), code(version["version"]), str(version["from_day"]), version["why"]
    rollout = scenario["incidents"]["bad_rollout"]
    scope = f"In {code(rollout['scope'])} alone, until day {rollout['until_day'] - 1}. {rollout['why']}"
    yield code(rollout["policy"]), code(rollout["version"]), str(rollout["from_day"]), scope


def _kinds(policy_id: str, policy: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {policy_id}"
    rows = [
        (code(name), str(kind["weight"]), *(str(kind["ends"][end]) for end in _ENDS))
        for name, kind in policy["kinds"].items()
    ]
    yield table(("kind", "weight", *_ENDS), rows)


def _owners(owners: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[str]]:
    for owner in owners:
        action = code(owner["action"]) if "action" in owner else "any"
        within = f"{owner['within_hours']} hours" if "within_hours" in owner else "none"
        yield code(owner["policy"]), action, owner["owner"], within, f"{owner['grant_hours']} hours"

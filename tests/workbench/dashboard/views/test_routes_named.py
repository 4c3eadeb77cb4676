"""The requests that pages tell their readers to send are ones that the service answers."""

from __future__ import annotations

import re
from typing import Final

import orjson

from tests.end_to_end.support import ROOT

TEMPLATES: Final = ROOT / "workbench" / "dashboard" / "views" / "templates"
REQUEST: Final = re.compile(r"\b(GET|POST) (/[\w/{}-]+)")


def test_every_request_that_a_page_names_is_described() -> None:
    paths = orjson.loads((ROOT / "schemas" / "openapi.json").read_bytes())["paths"]
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    named = {found for each in sorted(TEMPLATES.glob("*.html")) for found in REQUEST.findall(each.read_text())}
    assert ("POST", "/api/decide") in named
    assert {(method, path.replace("/ID", "/{decision_id}")) for method, path in named} - described == set()

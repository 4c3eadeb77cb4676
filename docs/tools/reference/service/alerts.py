"""docs/reference/alerts.md, from the annotations of the alert rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from api.errors import codes
from docs.tools.reference.http.families import target_of
from docs.tools.reference.markdown import anchor, link, page
from gate.instance.settings import Settings

SOURCE: Final = "deploy/prometheus/alerts.yaml"

_ROOT: Final = Path(__file__).parents[4]
_INTRODUCTION: Final = (
    "This page says what each [alert](../../deploy/prometheus/alerts.yaml) means, how to find its cause, and what to "
    "do. The texts also arrive with the alert, as annotations.",
    "While the service does not answer, callers hold their actions. To request a path on the host, use for example "
    "`curl http://127.0.0.1:8080/api/decision/status`.",
)
_PLACEHOLDERS: Final = {"$labels.instance": "the server", "$value": "N"}
"""What the page shows where Prometheus writes a value."""


def pages() -> dict[str, str]:
    """The one page."""
    (group,) = yaml.safe_load((_ROOT / SOURCE).read_text())["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    return {"alerts.md": page("# Alerts", *_INTRODUCTION, *(_section(rule, names) for rule in group["rules"]))}


def _section(rule: Mapping[str, Any], names: list[str]) -> str:
    said = {name: _linked(_filled(text), names) for name, text in rule["annotations"].items() if name != "runbook"}
    minutes = int(rule["for"].removesuffix("m"))
    when = f"after {minutes} minute{'s' if minutes > 1 else ''}" if minutes else "at once"
    return page(
        f"## `{rule['alert']}`",
        f"{said['summary']} {said['description']}",
        f"{rule['labels']['severity'].capitalize()}, {when}.",
        f"**Check:** {said['check']}",
        f"**Fix:**\n\n{said['fix']}" if said["fix"].startswith("- ") else f"**Fix:** {said['fix']}",
    )


def _filled(text: str) -> str:
    """An annotation with words for the values that Prometheus writes into it."""

    def words(found: re.Match[str]) -> str:
        value = _PLACEHOLDERS[found[1]]
        return value.capitalize() if found.start() == 0 and value != "N" else value

    return re.sub(r"\{\{ (\S+).*?\}\}", words, text)


def _linked(text: str, names: list[str]) -> str:
    """An annotation with links where it has the name of a page, of an alert, of a setting or of an error code."""

    def to_page(found: re.Match[str]) -> str:
        return link(_title(found[1], found[2]), f"../{found[1].removeprefix('docs/')}{found[2] or ''}")

    def to_entry(found: re.Match[str]) -> str:
        name = found[1]
        if name in names:
            return link(found[0], f"#{name.lower()}")
        if name in Settings.__struct_fields__:
            return link(found[0], f"settings.md#{name}")
        return link(found[0], f"errors/{target_of(name)}") if name in codes() else found[0]

    return re.sub(r"(docs/[\w/-]+\.md)(#[\w-]+)?", to_page, re.sub(r"`(\w+)`", to_entry, text))


def _title(path: str, target: str | None) -> str:
    """The heading that a link leads to."""
    headings: list[str] = re.findall(r"^#+ (.*)$", (_ROOT / path).read_text(), flags=re.MULTILINE)
    return next(each for each in headings if target is None or f"#{anchor(each)}" == target)

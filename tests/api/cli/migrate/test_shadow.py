"""gate migrate shadow: started, looked at, reported and stopped at the command line."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from gate.instance.instance import open_instance
from gate.instance.settings import load_settings
from tests.support.migrating import FACTS, SCOPE, CommandDesk, version
from workbench.shadows.watcher import Watcher


def look(desk: CommandDesk) -> None:
    """Exports, and looks at the shadows as the process for reports does."""
    assert desk.gate("lake", "export").returncode == 0
    with closing(open_instance(load_settings(desk.home))) as instance:
        Watcher(instance.ledger, instance.settings.lake_directory, instance.migrations()).look()


def test_a_shadow_from_its_start_to_its_end(desk: CommandDesk, tmp_path: Path) -> None:
    desk.route(version("1"), "first")
    desk.propose(version("2", 20), "second")
    assert desk.refusal("shadow", "show", "second")[0] == "SHADOW_NOT_RUNNING"

    told = desk.done("shadow", "start", "second", by="ben")
    assert told.startswith("Started the shadow of second as ben, from chain position ")
    assert f"`gate migrate shadow show second --scope {SCOPE}`" in told
    running = f"`gate migrate shadow show second --scope {SCOPE}` shows what it found.\n"
    assert running in desk.done("status")
    assert running in desk.done("show", "second")
    assert running not in desk.done("show", "first")
    assert desk.answer("status")["shadows"] == ["second"]
    assert desk.refusal("report", "second", "--shadow")[0] == "SHADOW_NOT_LOOKED_AT"
    assert "There is no result yet." in desk.done("shadow", "show", "second")

    desk.decide(*FACTS[:4])
    look(desk)
    shown = desk.done("shadow", "show", "second")
    assert "pricing_exception: version 2 compared with the active version 1; 4 decisions so far.\n" in shown
    assert "1 of 4 decisions would be decided differently; 1 would get another verdict (25.0" in shown
    assert "No longer approved: 1 (1 blocked, 0 held).\n" in shown
    found = desk.answer("shadow", "show", "second")
    history = found["rulebooks"]["pricing_exception"]
    assert (history["decisions"], history["verdict_changed"]["decisions"]) == (4, 1)
    (cause,) = history["transitions"]
    (row,) = (line.split() for line in shown.splitlines() if line.startswith("pricing_exception  "))
    assert row[1:] == [
        cause["rule"].removeprefix("rule:"),
        "yes",
        cause["then_rule"].removeprefix("rule:"),
        "no",
        "1",
        "25.0",
        "%",
    ]

    said = (
        f"This report is live: it covers the 4 decisions made since ben started the shadow at {found['started_at']}, "
    )
    written = desk.done("report", "second", "--shadow")
    lines = written.splitlines()
    assert any(line.startswith(said) for line in lines[:5])
    assert "Of 4 past decisions (week of " in written
    assert "), 1 would get another verdict" in written
    assert "This report is live" not in desk.done("report", "second")
    page = tmp_path / "live.html"
    desk.migrate("report", "second", "--shadow", "--output", str(page))
    assert said in page.read_text()
    live, evidence = desk.answer("report", "second", "--shadow"), desk.answer("report", "second")
    assert live["rulebooks"][0]["history"] == history
    assert live["rulebooks"][0]["difference"] == evidence["rulebooks"][0]["difference"]
    assert live["shadow"]["from_position"] == found["from_position"]

    assert "Stopped the shadow of second as ada. Its last result:\n" in desk.done("shadow", "stop", "second", by="ada")
    assert desk.refusal("shadow", "stop", "second", by="ada")[0] == "SHADOW_NOT_RUNNING"
    assert desk.answer("status")["shadows"] == []
    assert running not in desk.done("status")
    logged = json.loads(desk.gate("log", "--json").stdout)["entries"]
    assert [(of["action"], of["subject"], of["details"]["by"]) for of in logged if "shadow" in of["action"]] == [
        ("migration.shadow_started", "second", "ben"),
        ("migration.shadow_stopped", "second", "ada"),
    ]


def test_an_applied_migration_has_no_shadow(desk: CommandDesk) -> None:
    evidence = desk.propose(version("1"), "first")
    desk.done("approve", "first", "--evidence", evidence, by="ben")
    assert desk.answer("shadow", "start", "first", by="ada")["running"] is True
    desk.done("apply", "first", by="ada")
    code, told = desk.refusal("shadow", "show", "first")
    assert (code, "which ends its shadow" in told) == ("SHADOW_NOT_RUNNING", True)
    assert desk.refusal("shadow", "start", "first", by="ada")[0] == "MIGRATION_NOT_OPEN"


@pytest.mark.parametrize(
    ("arguments", "by", "code"),
    [
        (("start", "prices"), "vic", "MIGRATION_FORBIDDEN"),
        (("stop", "prices"), "vic", "MIGRATION_FORBIDDEN"),
        (("start", "prices"), None, "USAGE_INVALID"),
        (("start", "other"), "ada", "MIGRATION_UNKNOWN"),
        (("show", "other"), None, "MIGRATION_UNKNOWN"),
    ],
)
def test_who_may_not_start_or_stop_a_shadow_is_told(
    desk: CommandDesk, arguments: tuple[str, str], by: str | None, code: str
) -> None:
    desk.propose(version("1"))
    assert desk.refusal("shadow", *arguments, by=by)[0] == code

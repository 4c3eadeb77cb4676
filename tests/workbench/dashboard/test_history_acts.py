"""A history is imported from a page: its file in pieces, a rehearsal, and the import of the same bytes."""

from __future__ import annotations

import tempfile
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gate.ledger.access.authority import Scope
from tests.workbench.dashboard.serving import Channel, Site
from workbench.dashboard.studio.uploads import MAX_FILE
from workbench.history import sets, upkeep

ROOT = Path(__file__).parents[3]
CONTENT = (ROOT / "data/history/refunds.csv").read_bytes()
MAP = (ROOT / "data/history/refunds.map.yaml").read_text(encoding="utf-8")
PAGE = "/histories?scope=acme"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def uploads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where files that are sent lie meanwhile."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def page(site: Site) -> Iterator[Channel]:
    """The page of histories, as an author has it."""
    with site.browser("cem").open(PAGE) as channel:
        channel.go(PAGE)
        yield channel


def send(page: Channel, content: bytes, name: str = "refunds.csv", piece: int = 65_536) -> dict[str, Any]:
    """Sends a file as a page does; the last answer."""
    told: dict[str, Any] = {}
    for at in range(0, len(content), piece):
        part = b64encode(content[at : at + piece]).decode()
        told = page.act("send_file", file=name, size=len(content), at=at, piece=part)
        if "fault" in told:
            return told
    return told


def left(uploads: Path) -> list[Path]:
    return [path for path in uploads.rglob("*") if path.is_file()]


def test_what_was_rehearsed_is_imported_and_its_file_is_gone(
    site: Site, acme: Scope, page: Channel, uploads: Path
) -> None:
    lake = site.instance.settings.lake_directory
    assert send(page, CONTENT) == {"received": len(CONTENT), "n": page._acts, "told": page._acts}
    (file,) = left(uploads)
    assert file.read_bytes() == CONTENT
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    shown = page.act("rehearse_history", name="sent", map=MAP)["parts"]["rehearsal"]
    assert "days_<wbr>since_<wbr>purchase" in shown
    assert "none refused" in shown
    assert "6.13 to 399.25" in shown
    assert sets.names_of(lake, acme.scope_id) == []
    told = page.act("import_history", history="sent")
    (found,) = sets.all_of(lake, acme.scope_id)
    assert found.history_hash in told["parts"]["rehearsal"]
    assert found.history_hash in told["parts"]["histories"]
    assert left(uploads) == []
    # As often as somebody presses the button.
    assert "Rehearse the file first" in page.act("import_history", history="sent")["fault"]
    upkeep.remove(lake, acme.scope_id, "acme", "sent")


def test_nothing_is_imported_that_was_not_rehearsed(site: Site, acme: Scope, page: Channel) -> None:
    assert "Choose it again" in page.act("rehearse_history", name="mine", map=MAP)["fault"]
    send(page, CONTENT)
    assert "Rehearse the file first" in page.act("import_history", history="mine")["fault"]
    assert "parts" in page.act("rehearse_history", name="mine", map=MAP)
    assert "Rehearse the file first" in page.act("import_history", history="yours")["fault"]
    # Another file in its place.
    send(page, CONTENT[:-1])
    assert "Rehearse the file first" in page.act("import_history", history="mine")["fault"]
    assert sets.names_of(site.instance.settings.lake_directory, acme.scope_id) == []


def test_outcomes_with_odd_dates_are_warnings_of_a_rehearsal(page: Channel) -> None:
    content = CONTENT.replace(b",2024-02-07,", b",2029-02-07,", 1)
    assert content != CONTENT
    send(page, content)
    shown = page.act("rehearse_history", name="odd", map=MAP)["parts"]["rehearsal"]
    assert "1 outcome is dated more than a year after the last case." in shown
    assert "none refused" in shown


def test_refused_rows_are_shown_as_text_with_their_reasons(page: Channel) -> None:
    lines = CONTENT.decode().splitlines()
    broken = lines[1].replace("2024-01-10 01:00", HOSTILE)
    send(page, "\n".join([lines[0], broken, lines[2]]).encode(), f"{HOSTILE}.csv")
    shown = page.act("rehearse_history", name="mine", map=MAP)["parts"]["rehearsal"]
    assert "<img" not in shown
    assert "&lt;img src=x onerror=alert(1)&gt;" in shown
    assert "Import the 1 other row" in shown


def test_a_file_without_rows_has_nothing_to_import(site: Site, acme: Scope, page: Channel) -> None:
    send(page, CONTENT.splitlines(keepends=True)[0])
    shown = page.act("rehearse_history", name="none", map=MAP)["parts"]["rehearsal"]
    assert "The file has no rows, so there is nothing to import." in shown
    assert "<button" not in shown
    assert "there are none" in page.act("import_history", history="none")["fault"]
    assert sets.names_of(site.instance.settings.lake_directory, acme.scope_id) == []


def test_a_map_at_fault_is_told_by_its_members(page: Channel) -> None:
    send(page, CONTENT)
    told = page.act("rehearse_history", name="mine", map=MAP.replace("policy_id: refund_policy\n", ""))
    assert "policy_id" in told["fault"]
    assert "not the name of a history" in page.act("rehearse_history", name="../mine", map=MAP)["fault"]


def test_a_message_names_the_file_and_not_where_it_lies(page: Channel, uploads: Path) -> None:
    send(page, b"a,b\n1,2\n", "../../etc/pass wd.csv")
    (file,) = left(uploads)
    assert file.parent.parent == uploads
    told = page.act("rehearse_history", name="mine", map=MAP)
    assert str(uploads) not in told["fault"]
    send(page, b"a,b\n", "table.xlsx")
    told = page.act("rehearse_history", name="mine", map=MAP)
    assert "table.xlsx" in told["fault"]
    assert str(uploads) not in told["fault"]


@pytest.mark.parametrize("piece", ["no base64", "YQ", "\u00e9"])
def test_a_piece_that_is_none_is_refused(page: Channel, piece: str) -> None:
    assert "Load the page again" in page.act("send_file", file="a.csv", size=1, at=0, piece=piece)["fault"]


def test_a_file_in_pieces_that_do_not_fit_is_refused_and_gone(page: Channel, uploads: Path) -> None:
    send(page, b"abc")
    assert "Send the file again" in page.act("send_file", file="a.csv", size=9, at=2, piece="YQ==")["fault"]
    assert left(uploads) == []


def test_a_file_that_is_too_large_is_refused_whatever_it_says_of_its_size(page: Channel, uploads: Path) -> None:
    assert "20 MiB" in page.act("send_file", file="a.csv", size=MAX_FILE + 1, at=0, piece="YQ==")["fault"]
    piece = b"x" * (2 * 1024 * 1024)
    told: dict[str, Any] = {}
    for at in range(0, MAX_FILE + 1, len(piece)):
        told = page.act("send_file", file="a.csv", size=1, at=at, piece=b64encode(piece).decode())
    assert "20 MiB" in told["fault"]
    assert left(uploads) == []


def test_a_file_goes_with_the_page_it_was_sent_from(site: Site, uploads: Path) -> None:
    with site.browser("cem").open(PAGE) as channel:
        channel.go(PAGE)
        send(channel, CONTENT)
        assert left(uploads)
        channel.go("/drafts?scope=acme")
        channel.act("cancel", work="findings")
        assert left(uploads) == []
        assert "Choose it again" in channel.act("rehearse_history", name="mine", map=MAP)["fault"]

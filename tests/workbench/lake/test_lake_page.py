"""The programs in the guides to the lake and to finding decisions run, in the order of each page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gate.clock import utc_now
from gate.instance.instance import Instance
from gate.ledger.access.authority import FULL_ACCESS
from tests.end_to_end.support import ROOT
from tests.workbench.support import Chain
from workbench.lake.entries import Personal
from workbench.lake.upkeep import bring_up


@pytest.mark.parametrize(
    ("page", "programs", "printed"), [("read-the-lake.md", 5, "read_parquet"), ("find-decisions.md", 4, "")]
)
def test_the_programs_of_the_page_run(
    page: str,
    programs: int,
    printed: str,
    instance: Instance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    directory = instance.ledger.directory
    demo = directory.create_scope("demo", "unlimited", utc_now())
    key, _ = directory.create_key(demo, FULL_ACCESS, None, utc_now())
    Chain(instance, directory.authenticate(key, utc_now())).grow(6)
    lake = tmp_path / "var" / "lake"
    lake.mkdir(parents=True)
    for scope in instance.ledger.tail.scopes():
        for _ in bring_up(instance.ledger, lake, scope.scope_id, Personal()):
            pass
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs" / "guides" / page).read_text(), re.MULTILINE | re.DOTALL
    )
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)  # noqa: S102 - the page's own text
    assert len(blocks) == programs
    assert printed in capsys.readouterr().out

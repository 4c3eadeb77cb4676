"""A desk of each test's own, copied from one that was laid out once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.migrating import CommandDesk, lay_out


@pytest.fixture(scope="session")
def laid_out_desk(tmp_path_factory: pytest.TempPathFactory) -> CommandDesk:
    """A desk that nobody changes."""
    return lay_out(tmp_path_factory.mktemp("desk"))


@pytest.fixture
def desk(laid_out_desk: CommandDesk, tmp_path: Path) -> CommandDesk:
    """A desk with an author, an approver, a viewer and eight decisions, whose scope has no route."""
    return laid_out_desk.copy(tmp_path / "desk")

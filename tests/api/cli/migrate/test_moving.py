"""What moves while a migration is proved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.migrating import POLICY, SCOPE, CommandDesk, version
from workbench.migration import proof


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Has something happen once, while the next proof decides anew."""
    prove = proof.prove

    def happen(work: Callable[[], object]) -> None:
        def proving(*arguments: Any, told: Callable[[int, int], None], **options: Any) -> Any:
            happened: list[object] = []

            def tell(done: int, total: int) -> None:
                if not happened:
                    happened.append(work())
                told(done, total)

            found = prove(*arguments, told=tell, **options)
            assert happened
            return found

        monkeypatch.setattr(proof, "prove", proving)

    return happen


@pytest.fixture
def second(desk: CommandDesk) -> CommandDesk:
    """The desk with a second version in force."""
    desk.route(version("1"), "first")
    desk.route(version("2", 20), "second")
    return desk


def test_a_dry_run_ends_well_while_the_route_is_rolled_back(
    second: CommandDesk, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    file = second.write(version("3", 25), "third")
    meanwhile(lambda: second.done("rollback", POLICY, by="ben"))
    assert second.answer("dry-run", file)["rulebooks"][0]["base"]["version"] == "2"
    assert second.active() == "1"


def test_what_was_proved_while_the_route_was_rolled_back_is_not_proposed(
    second: CommandDesk, meanwhile: Callable[[Callable[[], object]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = second.write(version("3", 25), "third")
    meanwhile(lambda: second.done("rollback", POLICY, by="ben"))
    code, message = second.refusal("propose", file, by="ada")
    assert code == "EVIDENCE_STALE"
    assert "compares pricing_exception with 2, but its route now leads to 1." in message
    assert second.refusal("show", "third")[0] == "MIGRATION_UNKNOWN"
    monkeypatch.undo()
    # As the message says.
    evidence = second.answer("propose", file, by="ada")["evidence_hash"]
    second.done("approve", "third", "--evidence", evidence, by="ben")
    second.done("apply", "third", by="ada")
    assert second.active() == "3"


def test_decisions_that_are_made_while_it_is_proved_come_after_the_evidence(
    second: CommandDesk, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    file = second.write(version("3", 25), "third")
    meanwhile(lambda: second.decide({"discount_percent": 10, "margin_percent": 22}))
    code, message = second.refusal("propose", file, by="ada")
    assert (code, "1 decision of pricing_exception came after the 8" in message) == ("EVIDENCE_STALE", True)


def test_an_approval_that_comes_while_it_is_proved_anew_is_void(
    second: CommandDesk, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    file = second.write(version("3", 25), "third")
    earlier = second.propose(version("3", 30), "third")
    second.write(version("3", 25), "third")
    meanwhile(lambda: second.done("approve", "third", "--evidence", earlier, by="ben"))
    evidence = second.answer("propose", file, by="ada")["evidence_hash"]
    assert evidence != earlier
    shown = second.answer("show", "third")
    assert (shown["state"], shown["evidence_hash"]) == ("proposed", evidence)
    code, message = second.refusal("apply", "third", by="ada")
    assert (code, f"--scope {SCOPE} --evidence {evidence}" in message) == ("MIGRATION_NOT_APPROVED", True)

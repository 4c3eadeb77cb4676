"""What `gate migrate` refuses at an instance, and what it tells people to do instead."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from gate.instance import instance as composition
from tests.support.corpora import deals, write
from tests.support.migrating import PASSWORD, POLICY, SCOPE, CommandDesk, version
from workbench.migration import proof

NO_HASH: Final = "0" * 64
BOTH: Final = "Give --user NAME, which asks for the password, or --token-file FILE of a session, not both."


def set_up(desk: CommandDesk, setting: str) -> None:
    """Adds a setting of the instance."""
    with (desk.home / "settings.toml").open("a") as settings:
        settings.write(f"\n{setting}\n")


class TestSigning:
    """Who signs."""

    @pytest.mark.parametrize("command", ["propose", "approve", "reject", "apply", "rollback"])
    def test_whoever_changes_something_says_who_they_are(self, desk: CommandDesk, command: str) -> None:
        subject = desk.write(version("1")) if command == "propose" else POLICY
        evidence = ["--evidence", NO_HASH] if command == "approve" else []
        code, message = desk.refusal(command, subject, *evidence)
        assert (code, "--user NAME" in message, "--token-file FILE" in message) == ("USAGE_INVALID", True, True)
        assert message.startswith("The command needs a user: --user")
        code, message = desk.refusal(command, subject, *evidence, "--user", "ada", by="ada")
        assert (code, message) == ("USAGE_INVALID", BOTH)
        code, message = desk.refusal(command, subject, *evidence, "--user", "ada")
        assert (code, "`gate users sign-in`" in message) == ("PASSWORD_MISSING", True)
        assert desk.answer("list") == {"migrations": []}

    def test_a_token_that_stands_for_no_session_signs_nothing(self, desk: CommandDesk) -> None:
        desk.propose(version("1"))
        for content in (b"", b"\xff\x00", b"x" * 100_000, desk.token("ben").read_bytes()[:-3]):
            desk.token("ben").write_bytes(content)
            code, message = desk.refusal("reject", "prices", by="ben")
            assert (code, "ign in" in message) == ("SESSION_OVER", True)
        desk.token("ben").unlink()
        code, message = desk.refusal("reject", "prices", by="ben")
        assert (code, str(desk.token("ben")) in message) == ("FILE_UNREADABLE", True)
        assert desk.answer("show", "prices")["state"] == "proposed"

    def test_a_session_ends_with_sign_out_and_with_another_role(self, desk: CommandDesk) -> None:
        evidence = desk.propose(version("1"))
        assert desk.gate("users", "sign-out", "ben").returncode == 0
        assert desk.refusal("approve", "prices", "--evidence", evidence, by="ben")[0] == "SESSION_OVER"
        assert desk.gate("users", "grant", "ada", "--scope", SCOPE, "--role", "approver").returncode == 0
        assert desk.refusal("reject", "prices", by="ada")[0] == "SESSION_OVER"

    @pytest.mark.heavy
    def test_a_password_is_asked_for_on_a_terminal(self, desk: CommandDesk) -> None:
        evidence = desk.propose(version("1"))
        approving = ["approve", "prices", "--evidence", evidence, "--user", "ben"]
        code, shown = at_a_terminal(desk, *approving, typed="not the password")
        assert (code, "SIGN_IN_REFUSED" in shown, PASSWORD in shown) == (2, True, False)
        assert desk.answer("show", "prices")["state"] == "proposed"
        code, shown = at_a_terminal(desk, *approving, typed=PASSWORD)
        assert (code, "Approved prices as ben." in shown, PASSWORD in shown) == (0, True, False)
        assert desk.answer("show", "prices")["decided_by"] == "ben"


def at_a_terminal(desk: CommandDesk, *arguments: str, typed: str) -> tuple[int, str]:
    """The exit code of a `gate migrate` command at a terminal, where something is typed once it asks, and all that the
    terminal shows.
    """
    gate = str(Path(sys.executable).with_name("gate"))
    command = [gate, "migrate", *arguments, "--scope", SCOPE, "--home", str(desk.home)]
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as process:
        os.close(theirs)
        shown = b""
        # With the space, after which nothing that is typed is thrown away.
        while part := _read(ours):
            shown += part
            if typed and shown.endswith(b"Password of ben: "):
                os.write(ours, f"{typed}\n".encode())
                typed = ""
        os.close(ours)
    return process.returncode, shown.decode()


def _read(terminal: int) -> bytes:
    # A command that waits for what nobody types fails the test.
    assert select.select([terminal], [], [], 60)[0], "the command shows nothing more and does not end"
    try:
        return os.read(terminal, 1024)
    except OSError:
        # How Linux says that nobody is left at the other end.
        return b""


class TestRoles:
    """Who may do what."""

    def test_a_viewer_changes_nothing(self, desk: CommandDesk) -> None:
        evidence = desk.propose(version("1"))
        file = str(desk.folder / "prices.json")
        for arguments in (
            ("propose", file),
            ("approve", "prices", "--evidence", evidence),
            ("reject", "prices"),
            ("apply", "prices"),
            ("rollback", POLICY),
        ):
            code, message = desk.refusal(*arguments, by="vic")
            assert (code, "vic has the role viewer" in message) == ("MIGRATION_FORBIDDEN", True)
            assert "An operator can assign it with `gate users grant vic --scope acme --role " in message

    def test_what_nobody_may_propose_is_refused_before_the_work(
        self, desk: CommandDesk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        desk.route(version("1"), "first")
        worked = []
        prove = proof.prove

        def watched(*arguments: Any, **options: Any) -> Any:
            worked.append(arguments)
            return prove(*arguments, **options)

        monkeypatch.setattr(proof, "prove", watched)
        code, message = desk.refusal("propose", desk.write(version("2"), "second"), by="ben")
        assert (code, "this needs the role author" in message) == ("MIGRATION_FORBIDDEN", True)
        assert desk.refusal("propose", desk.write(version("1"), "first"), by="ada")[0] == "MIGRATION_NOT_OPEN"
        assert (
            desk.refusal("propose", desk.write(version("1", 20), "third"), by="ada")[0] == "RULEBOOK_VERSION_CONFLICT"
        )
        assert desk.refusal("dry-run", desk.write(version("2")), "--report", "r.txt")[0] == "REPORT_FORMAT_UNKNOWN"
        assert not worked
        desk.propose(version("2"), "second")
        assert worked

    def test_the_author_cannot_approve(self, desk: CommandDesk) -> None:
        evidence = desk.propose(version("1"))
        code, message = desk.refusal("approve", "prices", "--evidence", evidence, by="ada")
        # Not that she lacks a role: with it, she could not approve it either.
        assert (code, "cannot approve it" in message) == ("MIGRATION_FORBIDDEN", True)

    def test_an_author_rejects_no_migration_of_somebody_else(self, desk: CommandDesk) -> None:
        desk.propose(version("1"))
        desk.gate("users", "grant", "ben", "--scope", SCOPE, "--role", "author")
        desk.gate("users", "sign-in", "ben", "--token-file", str(desk.token("ben")), stdin=f"{PASSWORD}\n")
        code, message = desk.refusal("reject", "prices", by="ben")
        assert (code, "ben has the role author" in message) == ("MIGRATION_FORBIDDEN", True)
        assert message.endswith("--role approver`, which replaces the current role.")

    def test_an_author_withdraws_their_own(self, desk: CommandDesk) -> None:
        desk.propose(version("1"))
        assert desk.done("reject", "prices", by="ada") == ("Withdrew prices as ada. You can propose it again.\n")

    def test_the_author_cannot_approve_as_an_approver_either(self, desk: CommandDesk) -> None:
        evidence = desk.propose(version("1"))
        desk.gate("users", "grant", "ada", "--scope", SCOPE, "--role", "approver")
        desk.gate("users", "sign-in", "ada", "--token-file", str(desk.token("ada")), stdin=f"{PASSWORD}\n")
        code, message = desk.refusal("approve", "prices", "--evidence", evidence, by="ada")
        assert (code, "cannot approve it" in message) == ("MIGRATION_FORBIDDEN", True)
        assert "Ask another user with the role approver" in message

    def test_a_setting_lets_the_author_approve(self, desk: CommandDesk) -> None:
        set_up(desk, 'migration_approval = "author"')
        evidence = desk.propose(version("1"))
        desk.done("approve", "prices", "--evidence", evidence, by="ada")
        desk.done("apply", "prices", by="ada")
        assert desk.active() == "1"
        assert "needs the role approver or author" in desk.refusal("reject", "prices", by="vic")[1]


class TestEvidence:
    """What an approval rests on."""

    def test_another_hash_than_that_of_the_evidence(self, desk: CommandDesk) -> None:
        old = desk.propose(version("1"))
        new = desk.propose(version("1", 20))
        for given in (old, NO_HASH, new[:12], new.upper()):
            code, message = desk.refusal("approve", "prices", "--evidence", given, by="ben")
            # It does not tell the hash: whoever approves is to have read the report.
            assert (code, new in message) == ("EVIDENCE_MISMATCH", False)
            assert message.startswith(f"{given} is not the hash of the latest evidence of prices.")
            assert "Before you decide, read the report, which shows the latest hash" in message
        desk.done("approve", "prices", "--evidence", new, by="ben")

    def test_more_decisions_than_it_saw(self, desk: CommandDesk) -> None:
        evidence = desk.propose(version("1"))
        desk.decide({"discount_percent": 10, "margin_percent": 22})
        code, message = desk.refusal("approve", "prices", "--evidence", evidence, by="ben")
        assert code == "EVIDENCE_STALE"
        assert "1 decision of pricing_exception came after the 8 in the evidence, more than the allowed 5%." in message
        assert "Propose the migration again with `gate migrate propose`" in message
        assert f"stale: {message.split('stale. ')[1].split(' Propose')[0]}\n" in desk.done("show", "prices")
        set_up(desk, "migration_stale_percent = 13")
        desk.done("approve", "prices", "--evidence", evidence, by="ben")
        desk.decide({"discount_percent": 10, "margin_percent": 22})
        code, message = desk.refusal("apply", "prices", by="ada")
        assert (code, "2 decisions of pricing_exception came after the 8" in message) == ("EVIDENCE_STALE", True)
        assert "stale: 2 decisions of pricing_exception came after the 8" in desk.done("status")
        assert desk.active() is None

    def test_another_version_in_force_than_it_compares_with(self, desk: CommandDesk) -> None:
        desk.route(version("1"), "first")
        desk.route(version("2", 20), "second")
        evidence = desk.propose(version("3", 25), "third")
        desk.done("approve", "third", "--evidence", evidence, by="ben")
        desk.done("rollback", POLICY, by="ben")
        code, message = desk.refusal("apply", "third", by="ada")
        assert code == "EVIDENCE_STALE"
        assert "The evidence compares pricing_exception with 2, but its route now leads to 1." in message
        assert desk.active() == "1"

    def test_another_corpus_than_that_of_this_release(self, desk: CommandDesk, monkeypatch: pytest.MonkeyPatch) -> None:
        evidence = desk.propose(version("1"))
        # What the release after this one does.
        monkeypatch.setattr(composition, "corpus_hash", lambda: NO_HASH)
        code, message = desk.refusal("approve", "prices", "--evidence", evidence, by="ben")
        assert (code, f"this release has {NO_HASH}." in message) == ("EVIDENCE_STALE", True)

    def test_files_that_change_after_the_proposal_do_not_matter(self, desk: CommandDesk) -> None:
        write(desk.folder, deals())
        evidence = desk.propose(version("2026-06-11"), corpus="index.json")
        write(desk.folder, {"pricing.json": version("2026-06-11", 99), "deals.json": {}})
        desk.done("approve", "prices", "--evidence", evidence, by="ben")
        for file in desk.folder.iterdir():
            file.unlink()
        desk.done("apply", "prices", by="ada")
        assert desk.routed(discount_percent=10, margin_percent=17)["verdict"] == "yes"


class TestStates:
    """What may come next."""

    def test_what_is_not_approved_is_not_applied(self, desk: CommandDesk) -> None:
        evidence = desk.propose(version("1"))
        code, message = desk.refusal("apply", "prices", by="ben")
        assert code == "MIGRATION_NOT_APPROVED"
        assert f"`gate migrate approve prices --scope {SCOPE} --evidence {evidence}`" in message

    @pytest.mark.parametrize(
        ("done", "then", "advice"),
        [
            ("approve", "approve", "There is nothing left to approve. `gate migrate apply` applies it."),
            ("reject", "reject", "There is nothing left to do."),
            ("reject", "approve", "Propose it again with `gate migrate propose` before it can be approved."),
            ("reject", "apply", "Propose it again with `gate migrate propose`, and have it approved."),
            ("apply", "apply", "To change something else, propose another migration."),
            ("apply", "reject", "To change something else, propose another migration."),
            ("apply", "approve", "To change something else, propose another migration."),
            ("apply", "propose", "To change something else, propose another migration."),
        ],
    )
    def test_what_was_decided_stays_and_says_what_may_come_next(
        self, desk: CommandDesk, done: str, then: str, advice: str
    ) -> None:
        evidence = desk.propose(version("1"))
        acts: dict[str, Callable[[], list[str]]] = {
            "propose": lambda: ["propose", desk.write(version("1"))],
            "approve": lambda: ["approve", "prices", "--evidence", evidence],
            "reject": lambda: ["reject", "prices"],
            "apply": lambda: ["apply", "prices"],
        }
        if done == "apply":
            desk.done(*acts["approve"](), by="ben")
        desk.done(*acts[done](), by="ben")
        before = desk.answer("show", "prices")
        code, message = desk.refusal(*acts[then](), by="ada" if then == "propose" else "ben")
        assert (code, message.endswith(advice)) == ("MIGRATION_NOT_OPEN", True), message
        assert f"The migration prices was {'rejected' if done == 'reject' else 'approved'} by ben at" in message
        assert desk.answer("show", "prices") == before

    def test_another_migration_of_the_rulebook_is_superseded(self, desk: CommandDesk) -> None:
        evidence = desk.propose(version("2"), "second")
        desk.done("approve", "first", "--evidence", desk.propose(version("1"), "first"), by="ben")
        told = desk.done("apply", "first", by="ada")
        assert "Superseded second: it proposed another version of a rulebook that was applied.\n" in told
        assert "first:" not in told
        code, message = desk.refusal("approve", "second", "--evidence", evidence, by="ben")
        assert (code, "was superseded by ada at" in message) == ("MIGRATION_NOT_OPEN", True)
        assert "first was applied." in desk.done("show", "second")
        desk.route(version("2"), "second")
        assert desk.active() == "2"

    def test_an_approval_is_taken_back_and_a_rejection_proposed_again(self, desk: CommandDesk) -> None:
        evidence = desk.propose(version("1"))
        desk.done("approve", "prices", "--evidence", evidence, by="ben")
        told = desk.done("reject", "prices", "--note", "Not in December.", by="ben")
        assert told == "Rejected prices as ben. Its author can propose it again.\n"
        assert "rejected by ben: Not in December.\n" in desk.done("show", "prices")
        desk.route(version("1"), "prices")
        assert desk.active() == "1"

    @pytest.mark.parametrize(
        "arguments",
        [["show"], ["report"], ["approve", "--evidence", NO_HASH], ["reject"], ["apply"]],
        ids=lambda arguments: arguments[0],
    )
    @pytest.mark.parametrize("migration_id", ["none", "", "../prices", "x" * 10_000, "\x1b[2J\udcff"])
    def test_an_id_that_the_scope_does_not_have(
        self, desk: CommandDesk, arguments: list[str], migration_id: str
    ) -> None:
        command, *options = arguments
        signed = None if command in ("show", "report") else "ben"
        code, message = desk.refusal(command, migration_id, *options, by=signed)
        assert (code, "`gate migrate list` shows all migrations" in message) == ("MIGRATION_UNKNOWN", True)
        told = desk.migrate(command, migration_id, *options, by=signed).stderr
        assert "\x1b" not in told

    def test_a_rulebook_that_has_no_route_or_no_earlier_version(self, desk: CommandDesk) -> None:
        code, message = desk.refusal("rollback", POLICY, by="ben")
        assert (code, "`gate migrate status` shows all routes" in message) == ("ROUTE_UNKNOWN", True)
        desk.route(version("1"), "first")
        code, message = desk.refusal("rollback", POLICY, by="ben")
        assert code == "ROLLBACK_IMPOSSIBLE"
        assert "pricing_exception 1 was the first version applied" in message
        assert "Apply a migration to another version." in message

    def test_a_rollback_from_a_version_that_is_not_in_force_goes_nowhere(self, desk: CommandDesk) -> None:
        for number in ("1", "2", "3"):
            desk.route(version(number), f"prices_{number}")
        back = ("rollback", POLICY, "--from", "3")
        desk.done(*back, by="ben")
        # As whoever got no answer repeats it.
        code, message = desk.refusal(*back, by="ben")
        assert (code, desk.active()) == ("ROUTE_MOVED", "2")
        assert message == (
            "pricing_exception is routed to 2, not to 3, so nothing was rolled back. `gate migrate status "
            "--scope acme` shows who changed the route, and when."
        )

    def test_a_scope_that_is_not_there(self, desk: CommandDesk) -> None:
        file = desk.write(version("1"))
        for arguments in (
            ("dry-run", file),
            ("propose", file, "--token-file", str(desk.token("ada"))),
            ("rollback", POLICY, "--token-file", str(desk.token("ada"))),
            ("list",),
            ("status",),
            ("show", "prices"),
        ):
            done = desk.gate("migrate", *arguments, "--scope", "nowhere", "--json")
            assert (done.returncode, done.stdout) == (2, "")
            assert json.loads(done.stderr)["error"] == "SCOPE_UNKNOWN"


class TestProposals:
    """What cannot be proposed."""

    def test_a_version_that_names_another_rulebook(self, desk: CommandDesk) -> None:
        desk.route(version("1"), "first")
        code, message = desk.refusal("propose", desk.write(version("1", 20)), by="ada")
        assert (code, "version" in message) == ("RULEBOOK_VERSION_CONFLICT", True)

    def test_a_manifest_that_is_approved_in_the_file(self, desk: CommandDesk) -> None:
        approval = {"status": "approved", "approved_by": "ada", "approved_at": "2026-09-01T10:00:00Z"}
        file = desk.write(version("1"), status="approved", approval=approval)
        code, message = desk.refusal("propose", file, by="ada")
        assert code == "MIGRATION_STATUS_INVALID"
        assert "Set it to proposed. Approve it with `gate migrate approve`, not in the file." in message

    def test_a_change_without_an_approval(self, desk: CommandDesk) -> None:
        desk.route(version("1"), "first")
        file = desk.write(version("2", 20), approval={"status": "not_required"})
        code, message = desk.refusal("propose", file, by="ada")
        assert (code, "Set approval.status to pending" in message) == ("MIGRATION_APPROVAL_REQUIRED", True)
        assert desk.answer("dry-run", file)["rulebooks"][0]["difference"]["equal"] is False

    def test_a_note_that_is_too_long(self, desk: CommandDesk) -> None:
        code, message = desk.refusal("propose", desk.write(version("1")), "--note", "x" * 2001, by="ada")
        assert (code, "Write a shorter note" in message) == ("NOTE_INVALID", True)

    def test_a_report_in_place_of_anything_but_a_report(self, desk: CommandDesk, tmp_path: Path) -> None:
        file = desk.write(version("1"))
        desk.propose(version("1"))
        mine = {name: f"{tmp_path}/mine{name}" for name in (".html", ".md", ".json", ".csv", ".parquet")}
        for ending, name in mine.items():
            option = "--decisions" if ending in (".csv", ".parquet") else "--report"
            desk.done("dry-run", file, option, name)
            # A report is made again and again.
            desk.done("dry-run", file, option, name)
            Path(name).write_text("What a person wrote.")
            code, message = desk.refusal("dry-run", file, option, name)
            assert (
                code,
                f"{name} holds neither a migration report nor a list of decisions, so it is not overwritten" in message,
            ) == (
                "FILE_UNWRITABLE",
                True,
            )
            if option == "--report":
                assert desk.refusal("report", "prices", "--output", name)[0] == "FILE_UNWRITABLE"
            assert Path(name).read_text() == "What a person wrote."
        before = Path(file).read_bytes()
        assert desk.refusal("dry-run", file, "--report", file)[0] == "FILE_UNWRITABLE"
        assert Path(file).read_bytes() == before

    def test_a_report_or_a_day_without_a_known_form(self, desk: CommandDesk, tmp_path: Path) -> None:
        file = desk.write(version("1"))
        for option, name, endings in (
            ("--report", "report.txt", ".html, .md or .json"),
            ("--report", "report", ".html, .md or .json"),
            ("--decisions", "decisions.json", ".parquet or .csv"),
        ):
            code, message = desk.refusal("dry-run", file, option, str(tmp_path / name))
            assert (code, f"ends with {endings}." in message) == ("REPORT_FORMAT_UNKNOWN", True)
        for option, name in (("--report", "a/b.html"), ("--decisions", "a/b.csv"), ("--decisions", "a/b.parquet")):
            code, message = desk.refusal("dry-run", file, option, str(tmp_path / name))
            assert (code, str(tmp_path / name) in message) == ("FILE_UNWRITABLE", True)
        code, message = desk.refusal("dry-run", file, "--since", "yesterday")
        assert (code, "write --since 2026-06-01." in message) == ("DATE_INVALID", True)
        code, message = desk.refusal("dry-run", file, "--since", "2999-01-01T12:00:00Z")
        assert (code, "is in the future" in message) == ("DATE_INVALID", True)
        desk.propose(version("1"))
        assert desk.refusal("report", "prices", "--output", str(tmp_path / "r.txt"))[0] == "REPORT_FORMAT_UNKNOWN"

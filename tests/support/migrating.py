"""People at the command line of `gate migrate`: an author, an approver and a viewer, and what they propose."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final

from gate.clock import utc_now
from gate.instance.instance import open_instance
from gate.instance.settings import load_settings
from tests.support.command_line import run_gate
from tests.support.corpora import manifest, write
from tests.support.samples import sample_request, sample_rulebook

SCOPE: Final = "acme"
POLICY: Final = "pricing_exception"
PASSWORD: Final = "correct horse battery"
ROLES: Final[Mapping[str, str]] = {"ada": "author", "ben": "approver", "vic": "viewer"}

FACTS: Final = tuple(
    {"discount_percent": discount, "margin_percent": margin} for discount in (5, 15) for margin in (10, 17, 22, 30)
)
"""The facts of the decisions of a desk: at a margin of 17, a floor of 20 changes the verdict."""


def version(name: str, floor: float = 15) -> dict[str, Any]:
    """The sample rulebook under another version, with another floor of the margin in both of its rules."""
    body = {**sample_rulebook(), "version": name}
    for rule in body["rules"]:
        for test in rule["condition"].get("all", [rule["condition"]]):
            if test["field"] == "margin_percent":
                test["value"] = floor
    return body


@dataclass(frozen=True, slots=True)
class CommandDesk:
    """The command line over an instance, and a folder for the files of migrations.

    Attributes:
        home: The instance's directory. The tokens of its users lie beside it.
        folder: Where manifests and candidates are written.
    """

    home: Path
    folder: Path

    def copy(self, folder: Path) -> CommandDesk:
        """The same in another folder, which is made."""
        # The tokens of the users and the key lie beside the home.
        shutil.copytree(self.home.parent, folder)
        return CommandDesk(folder / self.home.name, folder / self.folder.name)

    def gate(self, *arguments: str, stdin: str = "") -> CompletedProcess[str]:
        """`gate ...` over the instance."""
        return run_gate(*arguments, "--home", str(self.home), stdin=stdin)

    def migrate(self, *arguments: str, by: str | None = None) -> CompletedProcess[str]:
        """`gate migrate ...` in the scope, signed by a user where one is named."""
        signed = [] if by is None else ["--token-file", str(self.token(by))]
        return self.gate("migrate", *arguments, "--scope", SCOPE, *signed)

    def done(self, *arguments: str, by: str | None = None, code: int = 0) -> str:
        """What such a command prints, which ends with an exit code."""
        found = self.migrate(*arguments, by=by)
        assert found.returncode == code, found.stderr or found.stdout
        assert found.stderr == ""
        return found.stdout

    def answer(self, *arguments: str, by: str | None = None, code: int = 0) -> Any:
        """What it prints with --json."""
        return json.loads(self.done(*arguments, "--json", by=by, code=code))

    def refusal(self, *arguments: str, by: str | None = None) -> tuple[str, str]:
        """The code of the error that it ends in, and what a person is told."""
        found = self.migrate(*arguments, "--json", by=by)
        assert (found.returncode, found.stdout) == (2, ""), found.stdout
        told = json.loads(found.stderr)
        return told["error"], told["message"]

    def token(self, name: str) -> Path:
        """The file with the token of a user's session."""
        return self.home.parent / f"{name}.token"

    def write(self, rulebook: Mapping[str, Any], migration_id: str = "prices", **members: Any) -> str:
        """Writes a manifest that proposes a rulebook; the path of its file."""
        named = manifest(migration_id=migration_id, **members)
        write(self.folder, {f"{migration_id}.json": named, "pricing.json": rulebook})
        return str(self.folder / f"{migration_id}.json")

    def propose(self, rulebook: Mapping[str, Any], migration_id: str = "prices", **members: Any) -> str:
        """Proposes a rulebook as the author; the hash of the evidence."""
        answer = self.answer("propose", self.write(rulebook, migration_id, **members), by="ada")
        return str(answer["evidence_hash"])

    def route(self, rulebook: Mapping[str, Any], migration_id: str) -> None:
        """Proposes, approves and applies a rulebook."""
        evidence = self.propose(rulebook, migration_id)
        self.done("approve", migration_id, "--evidence", evidence, by="ben")
        self.done("apply", migration_id, by="ada")

    def active(self) -> str | None:
        """The version that the sample rulebook's route leads to; None where there is no route."""
        routes = self.answer("status")["routes"]
        return routes[0]["to"]["version"] if routes else None

    def decide(self, *facts: Mapping[str, Any]) -> list[Any]:
        """Decides some facts by the sample rulebook, inline; the records."""
        with closing(open_instance(load_settings(self.home))) as instance:
            key = (self.home.parent / "key").read_text()
            authority, gate = instance.ledger.directory.authenticate(key, utc_now()), instance.gate()
            return [gate.decide(authority, sample_request(**of), request_id="req_0").record for of in facts]

    def routed(self, **facts: Any) -> Any:
        """A decision by the route; the record."""
        request = {**sample_request(**facts), "rulebook_ref": {"rulebook_id": POLICY}}
        del request["rulebook"]
        with closing(open_instance(load_settings(self.home))) as instance:
            key = (self.home.parent / "key").read_text()
            authority = instance.ledger.directory.authenticate(key, utc_now())
            return instance.gate().decide(authority, request, request_id="req_0").record


def lay_out(folder: Path) -> CommandDesk:
    """An instance with a scope, its users signed in, and decisions over `FACTS`, in a folder."""
    desk = CommandDesk(folder / "home", folder / "migrations")
    made = desk.gate("keys", "create", "--scope", SCOPE, "--plan", "unlimited", "--json")
    (folder / "key").write_text(json.loads(made.stdout)["key"])
    for name, role in ROLES.items():
        added = desk.gate("users", "add", name, "--scope", SCOPE, "--role", role, stdin=f"{PASSWORD}\n")
        assert added.returncode == 0, added.stderr
        signed = desk.gate("users", "sign-in", name, "--token-file", str(desk.token(name)), stdin=f"{PASSWORD}\n")
        assert signed.returncode == 0, signed.stderr
    desk.decide(*FACTS)
    return desk

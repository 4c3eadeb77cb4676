"""The `gate` command.

All subcommands have the same exit codes. 0: done, or the answer is good (verified, whole, valid). 1: the answer is not
good (not verified, broken, invalid). 2: the command failed (unusable input, unknown name, no instance).
"""

from __future__ import annotations

import atexit
import gc
import sys
from difflib import get_close_matches
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from api.cli.output import fail, note, say, show_everything
from gate import __version__
from gate.errors import GateError, OperatorError


class _Extra(Enum):
    """What a command needs besides the base install: the name of the extra, and the libraries that show it is there."""

    NONE = ("", ())
    AUTHORING = ("authoring", ("jsonschema_rs", "pysat", "ruamel.yaml", "yaml"))
    SERVER = ("server", ("sqlalchemy",))
    WORKBENCH = ("server,workbench", ("sqlalchemy", "polars"))

    def is_installed(self) -> bool:
        return all(map(_is_found, self.value[1]))


def _is_found(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:
        return False


# Loaded when called, so that verifying a record needs no server's libraries, and no command waits for another's. The
# summaries stand here as well, because loading every command for `gate --help` would take a second.
COMMANDS: Final = {
    "serve": ("api.cli.serve", _Extra.SERVER, "Serve the HTTP API. The first start creates the instance."),
    "demo": ("api.cli.demo.command", _Extra.SERVER, "Create a separate instance with a year of synthetic decisions."),
    "status": ("api.cli.status", _Extra.SERVER, "Show readiness, chains, and the size of the ledger."),
    "scopes": ("api.cli.scopes", _Extra.SERVER, "Create and show scopes, the accounts that own records."),
    "keys": ("api.cli.keys", _Extra.SERVER, "Create, list, disable, and rotate API keys."),
    "users": ("api.cli.users", _Extra.SERVER, "Add people who use the workbench, and grant them roles in scopes."),
    "pilot": (
        "api.cli.pilot",
        _Extra.SERVER,
        "List and erase requests for a pilot, with the tokens that confirm them.",
    ),
    "signing-keys": ("api.cli.signing_keys", _Extra.SERVER, "List, rotate, retire, and revoke signing keys."),
    "rulebook": ("api.cli.rulebook.command", _Extra.AUTHORING, "Check, test, analyze, and register rulebooks."),
    "migrate": (
        "api.cli.migrate.command",
        _Extra.AUTHORING,
        "Prove, approve, apply, and roll back changes of rulebooks.",
    ),
    "drafts": ("api.cli.drafts.command", _Extra.SERVER, "Write rulebooks as drafts with cases, and prove them."),
    "review": (
        "api.cli.review.command",
        _Extra.SERVER,
        "Set owners of held decisions, and grant or refuse the decisions.",
    ),
    "adapters": ("api.cli.adapters", _Extra.SERVER, "List the trusted adapters of this release, and run one."),
    "verify": ("api.cli.verify", _Extra.NONE, "Verify an exported decision record offline."),
    "verify-packet": ("api.cli.verify_packet", _Extra.NONE, "Verify an exported packet offline."),
    "conformance": ("api.cli.conformance", _Extra.NONE, "Check a running service against the published contract."),
    "client": (
        "api.cli.client",
        _Extra.NONE,
        "Inspect a guard's intent store, deliver its reports, and settle its actions.",
    ),
    "chain": ("api.cli.chain", _Extra.SERVER, "Check audit chains, and sign checkpoints of them."),
    "lake": ("api.cli.lake", _Extra.WORKBENCH, "Export the ledger to Parquet files for analysis."),
    "history": ("api.cli.history", _Extra.WORKBENCH, "Import past cases to try rulebooks on."),
    "notebook": ("api.cli.notebook", _Extra.WORKBENCH, "Write a notebook for one scope and policy."),
    "whatif": (
        "api.cli.whatif",
        _Extra.WORKBENCH,
        "Decide past decisions again with other facts or by another version.",
    ),
    "workbench": ("api.cli.workbench", _Extra.WORKBENCH, "Serve the dashboard to signed-in users."),
    "webhooks": ("api.cli.webhooks", _Extra.SERVER, "Send events to webhook endpoints, and replay failed deliveries."),
    "policies": ("api.cli.policies", _Extra.SERVER, "Check, copy, and list policy tables."),
    "erase": ("api.cli.erase", _Extra.SERVER, "Erase the personal data of a decision."),
    "log": ("api.cli.log", _Extra.SERVER, "Show what operators changed, who changed it, and when."),
    "backup": ("api.cli.backup", _Extra.SERVER, "Back up the whole instance to one file."),
    "restore": ("api.cli.restore", _Extra.SERVER, "Restore an instance from a backup into an empty directory."),
    "db": ("api.cli.db", _Extra.SERVER, "Upgrade the ledger's tables to this release."),
}

# The libraries of the extra `workbench` that commands load; it needs the extra `server` as well.
_WORKBENCH: Final = frozenset({"altair", "bokeh", "jinja2", "panel", "polars", "pyarrow"})
# Those of the extra `authoring` that are loaded only where they are used.
_AUTHORING: Final = frozenset({"pysat", "ruamel", "yaml"})


class _Commands(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # Suggestions for a misspelt name are looked up here.
        self.commands = {name: TyperCommand(name) for name in COMMANDS}
        self._in_help = False

    def get_command(self, ctx: object, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module, extra, summary = COMMANDS[cmd_name]
        if self._in_help:
            needs = "" if extra.is_installed() else f"(needs the extra `{extra.value[0]}`) "
            return TyperCommand(cmd_name, help=needs + summary)
        try:
            command = typer.main.get_command(import_module(module).app)
        except ModuleNotFoundError as error:
            command = _not_installed(error, extra)
        command.name = cmd_name
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._in_help = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._in_help = False


def _not_installed(error: ModuleNotFoundError, extra: _Extra) -> Any:
    """Stands for a command whose libraries the base install does not have."""
    stub = typer.Typer(rich_markup_mode=None, add_completion=False)
    missing = _extra_missing(error, extra)

    @stub.command(
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        help=f"(needs the extra `{extra.value[0]}`)",
    )
    def not_installed() -> None:
        raise missing from error

    return typer.main.get_command(stub)


def _extra_missing(error: ModuleNotFoundError, extra: _Extra = _Extra.SERVER) -> OperatorError:
    """Raises the error itself where it is a module of this package that is not there."""
    library = (error.name or "").partition(".")[0]
    if library in ("", "gate", "api"):
        raise error
    if library in _WORKBENCH:
        extra = _Extra.WORKBENCH
    elif library in _AUTHORING:
        extra = _Extra.AUTHORING
    name = extra.value[0]
    return OperatorError(
        "EXTRA_MISSING",
        f"This command needs {error.name}, which is in the extra `{name}`. Install it in a checkout with: "
        f"pip install '.[{name}]'",
    )


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Subcommands inherit the names of the help option.
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, or the answer is good; 1 the answer is not good; 2 the command failed. "
    "`gate COMMAND -h` shows the options of a command.",
)


def _show_version(asked: bool) -> None:
    if asked:
        say(f"gate {__version__}")
        raise typer.Exit


@app.callback()
def gate(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Decision Gate decides whether an action may happen, and returns a signed record that anyone can verify."""


def main() -> None:
    """Runs the command line."""
    # Whatever is left at the end goes with the process; searching it for garbage takes a fifth of a short command.
    atexit.register(gc.freeze)
    show_everything()
    try:
        sys.exit(app(standalone_mode=False))
    except _CommandLineError as error:
        fail(_misused(error), as_json="--json" in sys.argv)
    except typer.Abort:
        # Ctrl-C, or the end of the input at a question.
        note("gate: Interrupted.")
        sys.exit(130)
    except GateError as error:
        fail(error, as_json="--json" in sys.argv)
    except ModuleNotFoundError as error:
        # From a library that a command loads only when it runs.
        fail(_extra_missing(error), as_json="--json" in sys.argv)
    sys.exit(2)


# Typer has public names for the kinds of errors of a misused command line, but not for their base.
_CommandLineError: Final[type[Exception]] = typer.BadParameter.__mro__[2]


def _sentence(text: str) -> str:
    return text if text.endswith(("?", ".")) else f"{text}."


def _suggestion(error: Any) -> str | None:
    """The message about an unknown option with the nearest one that exists; None for other errors."""
    name, known = getattr(error, "option_name", None), getattr(error, "possibilities", None)
    likely = get_close_matches(name, known, n=1) if name and known else []
    return f"No such option {name!r}. Did you mean {likely[0]!r}?" if likely else None


def _misused(error: Any) -> OperatorError:
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        # Its message is the help itself.
        error.show()
        sys.exit(2)
    said = _suggestion(error) or error.format_message()
    command = "gate" if context is None else context.command_path
    return OperatorError("USAGE_INVALID", f"{_sentence(said)} Run `{command} --help` for usage.")

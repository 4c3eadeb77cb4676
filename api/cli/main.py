"""The `gate` command.

Exit codes, the same for every subcommand: 0 it did, or the answer is good (verified, whole, valid); 1 the answer is not
good (not verified, broken, invalid); 2 it could not be done (unusable input, unknown name, no instance).
"""

from __future__ import annotations

import atexit
import gc
import sys
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup

from api.cli.output import fail, show_everything
from gate.errors import GateError, OperatorError

# Loaded when called, so that verifying a record needs no server's libraries and no command waits for another's.
_MODULES: Final = {
    "serve": "api.cli.serve",
    "demo": "api.cli.demo.command",
    "status": "api.cli.status",
    "scopes": "api.cli.scopes",
    "keys": "api.cli.keys",
    "signing-keys": "api.cli.signing_keys",
    "rulebook": "api.cli.rulebook",
    "adapters": "api.cli.adapters",
    "verify": "api.cli.verify",
    "verify-packet": "api.cli.verify_packet",
    "conformance": "api.cli.conformance",
    "client": "api.cli.client",
    "chain": "api.cli.chain",
    "lake": "api.cli.lake",
    "notebook": "api.cli.notebook",
    "erase": "api.cli.erase",
    "log": "api.cli.log",
    "backup": "api.cli.backup",
    "restore": "api.cli.restore",
    "db": "api.cli.db",
}


# The libraries of the extra `workbench` that commands load; it needs the extra `server` as well.
_WORKBENCH: Final = frozenset({"altair", "isal", "msgspec", "polars", "pyarrow"})


class _Commands(TyperGroup):
    def list_commands(self, ctx: object) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: object, cmd_name: str) -> Any:
        module = _MODULES.get(cmd_name)
        if module is None:
            return None
        try:
            command = typer.main.get_command(import_module(module).app)
        except ModuleNotFoundError as error:
            command = _not_installed(error)
        command.name = cmd_name
        return command


def _not_installed(error: ModuleNotFoundError) -> Any:
    """Stands for a command whose libraries the base install does not have."""
    stub = typer.Typer(rich_markup_mode=None, add_completion=False)

    @stub.command(
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        help=f"(needs the extra `{_extra_of(error)}` of decision-gate)",
    )
    def not_installed() -> None:
        raise _extra_missing(error) from error

    return typer.main.get_command(stub)


def _extra_missing(error: ModuleNotFoundError) -> OperatorError:
    """Raises the error itself where it is a module of this package that is not there."""
    if (error.name or "").partition(".")[0] in ("", "gate", "api"):
        raise error
    return OperatorError(
        "EXTRA_MISSING",
        f"This command needs {error.name}, which the extra `{_extra_of(error)}` brings; install it in a checkout with: "
        f"pip install '.[{_extra_of(error)}]'",
    )


def _extra_of(error: ModuleNotFoundError) -> str:
    return "server,workbench" if (error.name or "").partition(".")[0] in _WORKBENCH else "server"


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 done, or the answer is good; 1 the answer is not good; 2 it could not be done.",
)


@app.callback()
def gate() -> None:
    """Decision Gate: signed, hashed, hash-chained decisions, before the action happens."""


def main() -> None:
    """Runs the command line."""
    # Whatever is left at the end goes with the process; searching it for garbage takes a fifth of a short command.
    atexit.register(gc.freeze)
    show_everything()
    try:
        sys.exit(app(standalone_mode=False))
    except _CommandLineError as error:
        fail(_misused(error), as_json="--json" in sys.argv)
    except GateError as error:
        fail(error, as_json="--json" in sys.argv)
    except ModuleNotFoundError as error:
        # From a library that a command loads only when it runs.
        fail(_extra_missing(error), as_json="--json" in sys.argv)
    sys.exit(2)


# Typer has public names for the kinds of errors of a misused command line, but not for their base.
_CommandLineError: Final[type[Exception]] = typer.BadParameter.__mro__[2]


def _misused(error: Any) -> OperatorError:
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        # Its message is the help itself.
        error.show()
        sys.exit(2)
    command = "gate" if context is None else context.command_path
    return OperatorError(
        "USAGE_INVALID", f"{error.format_message().rstrip('.')}; `{command} --help` tells what the command takes."
    )

"""The `gate` command in the process of the tests: a new one takes a second to start."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from subprocess import CompletedProcess

import pytest
import typer

from api.cli.main import main

# A process runs one command, for which the options of all those beside it are laid out as well.
_laid_out = cache(typer.main.get_command)


def run_gate(*arguments: str, stdin: str = "") -> CompletedProcess[str]:
    """What `gate ...` prints and its exit code. Nothing else may run a command meanwhile."""
    command = ["gate", *arguments]
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(out), redirect_stderr(err):
        patched.setattr(sys, "argv", command)
        patched.setattr(typer.main, "get_command", _laid_out)
        patched.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = _exit_code()
    return CompletedProcess(command, code, out.getvalue(), err.getvalue())


def _exit_code() -> int:
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0

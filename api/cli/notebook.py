"""`gate notebook`: write an analyst's notebook for a scope and a policy, ready to run."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from api.cli.options import DEFAULT_HOME, Home, Json
from api.cli.output import print_json, say, table
from gate.errors import OperatorError
from gate.instance.settings import load_settings
from workbench.lake.names import choices, shown
from workbench.lake.reader import Lake, Snapshot, open_lake
from workbench.notebooks import (
    HISTORY_NOTEBOOKS,
    Notebook,
    as_ipynb,
    as_percent,
    load,
    notebooks,
    over_history,
    written_for,
)

app = typer.Typer(add_completion=False)

_FORMATS: Final = {".ipynb": as_ipynb, ".py": as_percent}


@app.command()
def notebook(
    name: Annotated[str | None, typer.Argument(help="The name of the notebook. --list shows all names.")] = None,
    scope: Annotated[
        str | None, typer.Option(help="The scope to analyze. Optional if the lake holds only one.")
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="The policy to analyze. Optional if the scope has used only one.")
    ] = None,
    candidate: Annotated[
        str | None,
        typer.Option(
            help="For migration_dry_run: a rulebook file, or a version of the policy. Default: the version before "
            "the active one.",
            show_default=False,
        ),
    ] = None,
    history: Annotated[
        str | None,
        typer.Option(
            "--history",
            metavar="NAME",
            help="Read the imported cases of this history. Only for the notebook migration_dry_run.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write: .ipynb for Jupyter, or .py.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
    lake: Annotated[
        Path | None, typer.Option(help="The lake to read. Default: the lake of the instance.", show_default=False)
    ] = None,
    home: Home = DEFAULT_HOME,
    # Every command takes the options of an instance; this one reads the lake and not the ledger.
    database_url: Annotated[str | None, typer.Option("--database-url", hidden=True)] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the notebooks and exit.")] = False,
    as_json: Json = False,
) -> None:
    """Write a notebook for one of your scopes and policies. Open it in Jupyter, and run all cells.

    Some cells compare all scopes of the lake. Clear the outputs before you share the notebook with another scope.
    """
    if list_:
        _list(as_json)
        return
    if name is None:
        raise OperatorError(
            "USAGE_INVALID",
            "Give a notebook and the file to write, as in `gate notebook effectiveness --scope acme --policy "
            "refund_policy --out refunds.ipynb`; `gate notebook --list` shows all notebooks.",
        )
    source = load(name)
    if out is None:
        raise OperatorError(
            "USAGE_INVALID",
            f"Give the file to write: `gate notebook {name} --scope SCOPE --policy ID --out {name}.ipynb`.",
        )
    if out.suffix not in _FORMATS:
        raise OperatorError("USAGE_INVALID", f"--out {out} must end in {' or '.join(_FORMATS)}.")
    if not force and (out.exists() or out.is_symlink()):
        raise OperatorError("NOTEBOOK_EXISTS", f"{out} already exists; choose another file name, or add --force.")
    read = open_lake(load_settings(home).lake_directory if lake is None else lake)
    snapshot = _scope(read, scope)
    if history is not None:
        snapshot, source = snapshot.history(history), _over(source, history)
    about = _policy(snapshot, policy)
    more = {} if candidate is None else {"CANDIDATE": _candidate(source, snapshot, about, candidate)}
    _write(out, _FORMATS[out.suffix](written_for(source, snapshot.scope, about, read.directory, more)))
    if as_json:
        told = {"notebook": name, "scope": snapshot.scope, "policy": about, "lake": str(read.directory)}
        told |= {of.lower(): value for of, value in more.items()}
        print_json({**told, "file": str(out.absolute())})
    else:
        say(f"Wrote {out}: the notebook {name} for {about} in {snapshot.scope}, over the lake {read.directory}.")


def _list(as_json: bool) -> None:
    if as_json:
        print_json({"notebooks": [{"notebook": each.name, "title": each.title} for each in notebooks()]})
    else:
        table(["notebook", "title"], [[each.name, each.title] for each in notebooks()])


def _over(source: Notebook, history: str) -> Notebook:
    if source.name not in HISTORY_NOTEBOOKS:
        raise OperatorError(
            "USAGE_INVALID",
            f"The notebook {source.name} cannot read a history; {' and '.join(HISTORY_NOTEBOOKS)} can.",
        )
    return over_history(source, history)


def _scope(lake: Lake, name: str | None) -> Snapshot:
    return lake.scope(_only("scope", f"The lake {lake.directory}", lake.scopes) if name is None else name)


def _policy(snapshot: Snapshot, name: str | None) -> str:
    """The policy, if the scope has decided by it."""
    decided: list[str] = sorted(snapshot.cases().select("policy_id").unique().collect()["policy_id"])
    if name in decided:
        return name
    if name is None and decided:
        return _only("policy", f"Scope {snapshot.scope!r}", decided)
    by = "" if name is None else f" by a policy {shown(name)}"
    raise OperatorError(
        "LAKE_POLICY_UNKNOWN",
        f"The lake {snapshot.lake} has no decision of scope {shown(snapshot.scope)}{by}. "
        f"{choices(name or '', decided)} To update the lake, run `gate lake export` on its instance (with --home if it "
        f"is not in var).",
    )


def _candidate(notebook: Notebook, snapshot: Snapshot, policy: str, named: str) -> str:
    """A version of the policy, or the whole path of a rulebook file of it."""
    if not notebook.takes("CANDIDATE"):
        raise OperatorError("USAGE_INVALID", f"The notebook {notebook.name} has no --candidate; migration_dry_run has.")
    # The engine is loaded for the notebook that needs it.
    from gate.migration.folder import read_rulebook
    from workbench.migration.asked import versions

    decided = versions(snapshot, policy)
    if named in decided:
        return named
    file = Path(named)
    if not file.exists():
        raise OperatorError(
            "USAGE_INVALID",
            f"--candidate {shown(named)} is neither a file nor a version that has decided for {policy}. "
            f"{choices(named, decided)}",
        )
    rulebook = read_rulebook(file)
    if rulebook.rulebook_id != policy:
        raise OperatorError(
            "USAGE_INVALID", f"{file} contains the rulebook {rulebook.rulebook_id}, but the notebook is about {policy}."
        )
    return str(file.absolute())


def _only(what: str, where: str, there: Sequence[str]) -> str:
    if len(there) > 1:
        raise OperatorError("USAGE_INVALID", f"{where} has more than one {what}; add --{what}. {choices('', there)}")
    return there[0]


def _write(file: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    scratch = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        try:
            scratch.write_text(text, encoding="utf-8")
            scratch.replace(file)
        finally:
            scratch.unlink(missing_ok=True)
    except OSError as error:
        raise OperatorError("NOTEBOOK_UNWRITABLE", f"{file} cannot be written: {error.strerror}.") from error

"""docs/reference/cli: an index of every command, and a page for each first word, from the commands themselves."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import PurePath
from typing import Any, Final

from typer.main import get_command

from api.cli.main import COMMANDS, app
from docs.tools.markdown import paragraph, table

SOURCE: Final = "the help texts in api/cli"

_CODE: Final = re.compile(
    r"(?<![\w/.-])("
    r"--[a-z][a-z-]*|GATE_[A-Z_]+"
    r"|https?://[a-z0-9.:/-]*[a-z0-9]|/api/[a-z/]+"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:]+Z)?|[0-9]+[smhd]\b"
    r"|[\w.*-]*\.(?:html|md|jsonl?|csv|parquet|ipynb|py|db|key)\b|replay/operators\.eq"
    r"|hmac-sha256|ed25519"
    r")"
)
"""What of a help text is code, outside of backticks."""
_HEAD: Final = ("Argument or option", "Default", "Meaning")
_SEVERAL: Final = 3
_INTRO: Final = """\
# The `gate` command

This page lists every command of `gate`. `gate COMMAND -h` shows the same help in a terminal, and `gate --version`
prints the version. [Conventions](conventions.md) explains exit codes, common options and confirmation.

"""
_CONVENTIONS: Final = """\
# Conventions of the `gate` command

This page explains what all commands of `gate` have in common: exit codes, common options, confirmation, and extras.

## Exit codes and errors

| Exit code | Meaning |
|---|---|
| 0 | done, or the answer is good (verified, whole, valid) |
| 1 | the answer is not good (not verified, broken, invalid) |
| 2 | the command failed (unusable input, unknown name, no instance) |
| 130 | you interrupted the command |

An error is one line on stderr, `gate: <sentence> (<CODE>)`. With `--json` it is `{error, message, errors}`. [Error
codes](../command-errors/README.md) explains each code. Text from records, files, and arguments is printed with escapes
such as `\\x1b` for unprintable characters, so that it cannot control your terminal.

## Common options

Most commands take these options. The page of a command says which.

| Option | Environment | Meaning |
|---|---|---|
| `--home DIR` | `GATE_HOME` | The home directory of the instance. Default: `var`. |
| `--database-url URL` | `GATE_DATABASE_URL` | The ledger's database. Default: the setting `database_url`. |
| `--json` | | Print JSON. |
| `-h`, `--help` | | Show the help. |

Some commands need no instance and ignore the first two options: `gate rulebook` (all but `register`, `list`, and
`show`), `gate migrate new`, `gate migrate check`, `gate adapters` and `gate conformance`. `gate adapters` reads only
the setting `adapter_isolation` of the instance. `gate verify`, `gate verify-packet` and `gate notebook` ignore
`--database-url`.

`gate serve`, `gate scopes create` and `gate keys create` create an instance if there is none, and say so on stderr.
Other commands then fail with `INSTANCE_MISSING`. No command creates a ledger for an instance that lost its own: all but
`gate status` fail with `DATABASE_UNREACHABLE`.

## Confirmation

Commands that cannot be undone ask before they act: `gate erase`, `gate pilot erase`, `gate webhooks remove`, `gate keys
disable`, `gate keys rotate` without an overlap, `gate signing-keys compromise` and `gate chain epoch`. In a script,
without a terminal, they need `--yes`. Without it, they change nothing and exit with 2 and `CONFIRMATION_REQUIRED`.
Those with `--dry-run` show the effect and change nothing.

## Extras

The base installation (`pip install .` in a checkout) has `gate verify`, `gate verify-packet`, `gate conformance` and
`gate client`. The other commands need an extra, such as `pip install '.[server]'`, and fail with `EXTRA_MISSING`
without it. `server` includes `authoring`. `gate rulebook register`, `list` and `show` need `server`. `gate migrate new`
and `check` need `authoring`, and the other commands of `gate migrate` need `server,workbench`.
"""


def pages() -> dict[str, str]:
    """The index, the conventions, and a page for each first word."""
    root: Any = get_command(app)
    words = {name: root.get_command(None, name) for name in root.list_commands(None)}
    commands = {name: list(_leaves(command, name)) for name, command in words.items()}
    index = table(
        ("Command", "Does", "Commands in it"),
        (
            (f"[`gate {name}`]({name}.md)", _sentence(command.help), _links(name, commands[name]))
            for name, command in words.items()
        ),
    )
    return {"cli/README.md": f"{_INTRO}{index}", "cli/conventions.md": _CONVENTIONS} | {
        f"cli/{name}.md": _page(name, words[name], commands[name]) for name in words
    }


def _leaves(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The commands that can be run below a command, each with its words."""
    if not hasattr(command, "list_commands"):
        yield path, command
        return
    for name in command.list_commands(None):
        yield from _leaves(command.get_command(None, name), f"{path} {name}")


def _sentence(text: str | None) -> str:
    """The first sentence of a help text, without the exit codes that may follow a colon."""
    first = " ".join((text or "").split("\n\n")[0].split())
    return _marked(f"{re.split(r': 0 |[.] (?=[A-Z`-])', first)[0].removesuffix('.')}.")


def _links(name: str, commands: Sequence[tuple[str, Any]]) -> str:
    """The commands of a group, each with a link; nothing for a command that stands alone."""
    return ", ".join(
        f"[`{path.removeprefix(name).strip()}`]({name}.md{_anchor(path)})" for path, _ in commands if path != name
    )


def _anchor(path: str) -> str:
    return f"#gate-{path.replace(' ', '-')}"


def _page(name: str, command: Any, commands: Sequence[tuple[str, Any]]) -> str:
    is_group = hasattr(command, "list_commands")
    extra = COMMANDS[name][1].value[0]
    intro = f"This page lists what `gate {name}` does and takes."
    if extra:
        intro = f"{intro} It needs the [extra](conventions.md#extras) `{extra}`."
    parts = [f"# `gate {name}`\n", paragraph(intro)]
    if is_group:
        parts.append(_prose(command.help))
    shared = _shared([each for _, each in commands])
    shared = shared if len(shared) > 1 else {}
    if shared:
        parts.append("Arguments and options of several commands:\n")
        parts.append(table(_HEAD, (_row(each) for each in shared.values())))
    parts += (_section(path, each, shared, titled=is_group) for path, each in commands)
    return "\n".join(parts)


def _shared(commands: Sequence[Any]) -> dict[str, Any]:
    """The arguments and options that three commands or more have with the same meaning, by their rows."""
    rows = [(str(_row(each)), each) for command in commands for each in (*_arguments(command), *_own(command))]
    counts = Counter(row for row, _ in rows)
    return {row: option for row, option in rows if counts[row] >= _SEVERAL}


def _arguments(command: Any) -> list[Any]:
    return [each for each in command.params if each.param_type_name == "argument"]


def _own(command: Any) -> list[Any]:
    """The options of a command but those that nearly every command has."""
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    return [each for each in options if not _is_common(each)]


def _section(path: str, command: Any, shared: Mapping[str, Any], *, titled: bool) -> str:
    arguments, options = _arguments(command), _own(command)
    told = [each for each in (*arguments, *options) if str(_row(each)) not in shared]
    also = [each.opts[0] for each in options if str(_row(each)) in shared]
    also += [each.opts[0] for each in command.params if each.param_type_name == "option" and _is_common(each)]
    usage = [
        f"gate {path}",
        *map(_written, arguments),
        *(_usage(each) for each in options if each.required),
        "[OPTIONS]",
    ]
    parts = [f"## `gate {path}`\n"] if titled else []
    parts += [_prose(command.help), f"```text\n{' '.join(usage)}\n```\n"]
    if told:
        parts.append(table(_HEAD, map(_row, told)))
    if also:
        parts.append(paragraph(f"Also takes {_and([f'`{each}`' for each in also])}."))
    return "\n".join(parts)


def _row(parameter: Any) -> tuple[str, str, str]:
    if parameter.param_type_name == "argument":
        return f"`{_name(parameter)}`", "required" if parameter.required else "", _marked(parameter.help or "")
    return _option(parameter), _default(parameter), _meaning(parameter)


def _is_common(option: Any) -> bool:
    """Whether an option is the one that most commands have: those of a few have a meaning or a default of their own."""
    texts = {"--home": "The home directory of the instance.", "--json": "Print JSON."}
    name = option.opts[0]
    if name == "--database-url":
        return True
    return name in texts and option.help == texts[name]


def _prose(text: str | None) -> str:
    return "\n".join(paragraph(_marked(each)) for each in (text or "").strip().split("\n\n"))


def _marked(text: str) -> str:
    """A help text with its options, files, addresses, and dates as code."""
    outside = text.split("`")
    outside[::2] = [_CODE.sub(r"`\1`", each) for each in outside[::2]]
    return "`".join(outside)


def _name(parameter: Any) -> str:
    """What stands for a value: `KEY_ID`, `recorded|occurred`."""
    if parameter.metavar:
        return str(parameter.metavar)
    kind = parameter.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(each.value) for each in kind)
    return str(parameter.name).strip("_").upper()


def _written(argument: Any) -> str:
    name = _name(argument)
    if argument.nargs == -1 and not name.endswith("..."):
        name = f"{name}..."
    return name if argument.required else f"[{name}]"


def _usage(option: Any) -> str:
    return f"{option.opts[0]} {_name(option)}"


def _option(option: Any) -> str:
    names = f"`{option.opts[0]}`, `{option.opts[1]}`" if len(option.opts) > 1 else ""
    if option.is_flag:
        return names or ", ".join(f"`{each}`" for each in (*option.opts, *option.secondary_opts))
    return names or f"`{_usage(option)}`"


def _default(option: Any) -> str:
    default = option.default() if callable(option.default) else option.default
    if option.required:
        return "required"
    if option.is_flag:
        return "on" if default else "off" if option.secondary_opts and default is not None else ""
    if default is None or default in ("", []) or isinstance(default, list | tuple):
        return ""
    value = default.value if isinstance(default, Enum) else default
    shown = str(value) if isinstance(value, str | PurePath) else json.dumps(value)
    return "all" if shown.count(",") > 3 else f"`{shown}`"


def _meaning(option: Any) -> str:
    told = str(option.help or "")
    if option.min is not None and option.max is not None and not any(char.isdigit() for char in told):
        told = f"{told} {option.min} to {option.max}."
    return _marked(f"{told} Environment: {option.envvar}." if option.envvar else told)


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

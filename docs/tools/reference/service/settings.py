"""docs/reference/settings.md, from the settings of an instance, and docs/reference/environment.md."""

from __future__ import annotations

import inspect
import json
import re
from typing import Final, get_args, get_type_hints

from docs.tools.markdown import paragraph, table
from gate.adapters.containment import MEASURES
from gate.client.connection import VARIABLES
from gate.instance.settings import TAKES, Settings

SOURCE: Final = "gate/instance/settings.py"

_INTRO: Final = """\
# Settings

This page lists every setting of an instance.

Set a setting in `settings.toml` in the home directory, or in the environment as `GATE_<NAME>`. The environment wins
over the file. The service reads settings when it starts: restart it after a change.

- An unknown name in the file is an error. An unknown `GATE_` variable is ignored: check its spelling.
- Write a list in the file in TOML, `trusted_proxies = ["10.0.0.5"]`, and in the environment in JSON,
  `GATE_TRUSTED_PROXIES='["10.0.0.5"]'`. Repeated entries count once.
- A relative path starts at the directory in which the command runs.
- No command takes a secret as an option.

[Environment variables](environment.md) lists the other variables, which the client and the tools read.

"""
_ENVIRONMENT: Final = """\
# Environment variables

This page lists the environment variables that the client and the tools read. Each [setting](settings.md) of an
instance has a variable too, `GATE_<NAME>`. An argument or option wins over its variable.

"""
_COMMANDS: Final = {
    "GATE_HOME": "The home directory of the instance, for every command with the option `--home` except `gate demo`.",
    "GATE_DATABASE_URL": "The ledger, for every command with the option `--database-url`.",
}
_TOOLS: Final = {
    "GATE_LAKE": "For notebooks: the lake to read. For the service: the setting [`lake`](settings.md#lake).",
    "HTTPS_PROXY": "For `gate verify`, `gate verify-packet` and `gate conformance`: the proxy to reach an `https://` "
    "address through. Without this variable, they ignore other proxy variables too.",
    "SSL_CERT_FILE": "A file with the certificate authorities to trust, in PEM: for the client, and for the service's "
    "calls to [`advisory_url`](settings.md#advisory_url).",
}


def pages() -> dict[str, str]:
    """The settings, and the other environment variables."""
    meanings = _meanings()
    sections = "\n".join(_section(name, meanings) for name in Settings.__struct_fields__)
    variables = {**_COMMANDS, **VARIABLES, **_TOOLS}
    rows = ((f"`{name}`", meaning) for name, meaning in variables.items())
    return {
        "settings.md": f"{_INTRO}{sections}",
        "environment.md": f"{_ENVIRONMENT}{table(('Variable', 'Meaning'), rows)}",
    }


def _section(name: str, meanings: dict[str, str]) -> str:
    meaning, default = _default(name, meanings)
    takes, example = TAKES.get(name, ("the path of a directory", "/srv/gate"))
    line = f"{name} = {json.dumps(example)}" if name in TAKES else f"--home {example}"
    if name == "adapter_isolation":
        takes = f"a list of {', '.join(f'`{measure}`' for measure in MEASURES)}"
    for value in get_args(get_type_hints(Settings)[name]):
        if isinstance(value, str):
            takes = re.sub(rf"(?<![\w-]){value}(?![\w-])", f"`{value}`", takes)
    return (
        f"## `{name}`\n\n{paragraph(meaning)}\n"
        + paragraph(f"- Takes {takes}, for example `{line}`.", indent="  ")
        + paragraph(f"- Default: {default}. Environment: `GATE_{name.upper()}`.", indent="  ")
    )


def _default(name: str, meanings: dict[str, str]) -> tuple[str, str]:
    """The meaning of a setting without its default, and that: the one its text ends with, or its value."""
    meaning, _, told = meanings[name].partition(" Default: ")
    if told:
        return meaning, told.removesuffix(".")
    value = next(
        of
        for field, of in zip(
            Settings.__struct_fields__[-len(Settings.__struct_defaults__) :], Settings.__struct_defaults__, strict=True
        )
        if field == name
    )
    return meaning, f"`{json.dumps(value) if isinstance(value, int | tuple) else value}`"


def _meanings() -> dict[str, str]:
    """What the docstring of the settings says of each."""
    told = inspect.getdoc(Settings) or ""
    entries = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", told.partition("Attributes:")[2], flags=re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}

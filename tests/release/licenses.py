"""The license of each package, and whether a release may depend on it.

A license is an SPDX expression. A package states it as such, or as an SPDX identifier in the field `License`, or by one
classifier that means one license. For the others, `READ` says what their license files are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution
from typing import Any, Final

from license_expression import ExpressionError, get_spdx_licensing
from packaging.utils import canonicalize_name

ALLOWED: Final = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MIT-0",
        "MIT-CMU",
        "PSF-2.0",
        "Zlib",
    }
)
"""Licenses that ask at most for their notice. Each package is installed from its own distribution, which carries it."""


@dataclass(frozen=True, slots=True)
class Excuse:
    """A package that a release may depend on although its license is not in `ALLOWED`.

    Attributes:
        license: The identifier that is excused, and no other.
        reason: Why.
    """

    license: str
    reason: str


_OWN_FILES: Final = "The license covers the package's own files. They are used unmodified, from its own distribution."

EXCEPTIONS: Final = {
    "certifi": Excuse("MPL-2.0", f"Mozilla's list of certificate authorities. {_OWN_FILES}"),
    "orjson": Excuse("MPL-2.0", f"The JSON library. {_OWN_FILES}"),
    "psycopg": Excuse(
        "LGPL-3.0-only",
        "The PostgreSQL driver, imported as a library, unmodified. Anyone can replace it with another version.",
    ),
    "psycopg-binary": Excuse(
        "LGPL-3.0-only",
        "The compiled half of psycopg, a package of its own, unmodified. Without it, psycopg runs in pure Python.",
    ),
    "tqdm": Excuse("MPL-2.0", f"Progress bars; Panel depends on it. {_OWN_FILES}"),
}
"""One by one. Each is excused for one license, so that a package that changes its license fails again."""

READ: Final = {
    # Their fields say "BSD" or hold the whole text, which has the clause about names: three clauses.
    "altair": "BSD-3-Clause",
    "contourpy": "BSD-3-Clause",
    "itsdangerous": "BSD-3-Clause",
    "jinja2": "BSD-3-Clause",
    "panel": "BSD-3-Clause",
    "panel-material-ui": "BSD-3-Clause",
    "pyviz-comms": "BSD-3-Clause",
}
"""Read in the license files of runtime packages that state none of the above."""

READ_FOR_DEVELOPMENT: Final = {"axe-playwright-python": "MIT", "zen-engine": "MIT"}
"""The same for packages that only development needs, where not even a word says it."""

_CLASSIFIERS: Final = {
    "Apache Software License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""Those that mean one license. "BSD License" means several."""


def license_of(installed: Distribution) -> str | None:
    """The SPDX expression of a package; None where nothing says it."""
    stated = _field(installed, "License-Expression") or _field(installed, "License")
    if _parsed(stated) is not None:
        return stated
    classified = _classified(installed)
    if len(classified) == 1 and (meant := _CLASSIFIERS.get(classified[0])):
        return meant
    name = str(canonicalize_name(installed.name))
    return READ.get(name) or READ_FOR_DEVELOPMENT.get(name)


def words_of(installed: Distribution) -> str:
    """The license of a package as an SPDX expression, or in its own words; empty where it says nothing."""
    own_words = ", ".join(_classified(installed)) or _field(installed, "License").partition("\n")[0].strip()
    return license_of(installed) or ("" if own_words == "UNKNOWN" else own_words)


def refused(packages: Mapping[str, Distribution]) -> list[str]:
    """What a release may not depend on.

    Returns:
        A sentence for each package whose license is unknown, or neither allowed nor excused.
    """
    sentences = []
    for name, installed in packages.items():
        expression, excused = license_of(installed), EXCEPTIONS.get(name)
        allowed = ALLOWED | ({excused.license} if excused else set())
        if expression is None:
            sentences.append(f"{name} {installed.version} does not state its license. Read it, and add it to READ.")
        elif not permits(expression, allowed):
            sentences.append(f"{name} {installed.version} has the license {expression}, which is not allowed.")
    return sentences


def forbidden(packages: Mapping[str, Distribution]) -> list[str]:
    """What may not even be developed with.

    Returns:
        A sentence for each package whose license is unknown, or the AGPL.
    """
    sentences = []
    for name, installed in packages.items():
        words = words_of(installed)
        if not words:
            sentences.append(f"{name} {installed.version} does not state its license.")
        elif "AGPL" in words or "Affero" in words:
            sentences.append(f"{name} {installed.version} has the license {words}.")
    return sentences


def permits(expression: str, allowed: Iterable[str]) -> bool:
    """Whether an SPDX expression is met by allowed licenses alone: every part of an AND, one of an OR."""
    return _met(_parsed(expression), frozenset(allowed))


def _met(node: Any, allowed: frozenset[str]) -> bool:
    licensing = _licensing()
    if isinstance(node, licensing.AND):
        return all(_met(each, allowed) for each in node.args)
    if isinstance(node, licensing.OR):
        return any(_met(each, allowed) for each in node.args)
    return node is not None and node.render() in allowed


def _parsed(expression: str) -> Any:
    """The tree of an SPDX expression; None where a text is none."""
    # Some packages put the whole text into the field.
    if not expression or len(expression) > 200:
        return None
    try:
        parsed = _licensing().parse(expression, validate=True)
    except ExpressionError:
        return None
    # The library also takes other names for licenses, such as "BSD".
    words = set(expression.replace("(", " ").replace(")", " ").split())
    return parsed if set(_licensing().license_keys(parsed)) <= words else None


def _field(installed: Distribution, name: str) -> str:
    return "".join(installed.metadata.get_all(name, []))


def _classified(installed: Distribution) -> list[str]:
    classifiers = installed.metadata.get_all("Classifier", [])
    return [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License :: ")]


@cache
def _licensing() -> Any:
    return get_spdx_licensing()

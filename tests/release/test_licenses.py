"""No package that the product runs on has a license that is neither allowed nor excused by name."""

from __future__ import annotations

from email.message import Message
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from tests.release.licenses import (
    ALLOWED,
    EXCEPTIONS,
    READ,
    READ_FOR_DEVELOPMENT,
    forbidden,
    license_of,
    permits,
    refused,
)
from tests.release.packages import development, runtime

FIELDS = {
    "an expression": ({"License-Expression": "MIT OR GPL-3.0-only"}, "MIT OR GPL-3.0-only"),
    "an identifier": ({"License": "BSD-3-Clause"}, "BSD-3-Clause"),
    "a classifier": ({"Classifier": "License :: OSI Approved :: MIT License"}, "MIT"),
    "an ambiguous classifier": ({"Classifier": "License :: OSI Approved :: BSD License"}, None),
    "a nickname": ({"License": "BSD"}, None),
    "a text": ({"License": "Permission is hereby granted, free of charge, " * 9}, None),
    "nothing": ({}, None),
}


def installed(folder: Path, name: str = "made-up", **fields: str) -> PathDistribution:
    """A package with these fields in its metadata."""
    metadata = Message()
    for field, value in {"Metadata-Version": "2.4", "Name": name, "Version": "1", **fields}.items():
        metadata[field.replace("_", "-")] = value
    about = folder / f"{name}-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(str(metadata))
    return PathDistribution(about)


def test_a_release_may_depend_on_everything_that_the_product_runs_on() -> None:
    assert refused({name: package.installed for name, package in runtime().items()}) == []


def test_development_uses_nothing_under_the_agpl_or_an_unknown_license() -> None:
    assert forbidden(development()) == []


def test_every_exception_is_needed_and_has_a_reason() -> None:
    needed = runtime()
    for name, excuse in EXCEPTIONS.items():
        stated = license_of(needed[name].installed)
        assert stated is not None
        assert not permits(stated, ALLOWED), name
        assert permits(stated, ALLOWED | {excuse.license}), name
        assert excuse.reason.endswith(".")


def test_every_license_that_was_read_is_of_a_package_that_states_none() -> None:
    assert READ.keys() <= runtime().keys()
    assert READ_FOR_DEVELOPMENT.keys() <= development().keys()


@pytest.mark.parametrize("case", FIELDS)
def test_a_license_is_taken_from_where_a_package_states_it(case: str, tmp_path: Path) -> None:
    fields, expected = FIELDS[case]
    assert license_of(installed(tmp_path, **fields)) == expected


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("MIT AND (GPL-3.0-only OR Apache-2.0)", True),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
    ],
)
def test_an_expression_is_met_by_allowed_licenses_alone(expression: str, allowed: bool) -> None:
    assert permits(expression, ALLOWED) is allowed


def test_a_package_is_refused_for_a_license_that_it_is_not_excused_for(tmp_path: Path) -> None:
    psycopg = installed(tmp_path, "psycopg", License_Expression="AGPL-3.0-only")
    assert refused({"psycopg": psycopg}) == ["psycopg 1 has the license AGPL-3.0-only, which is not allowed."]
    assert forbidden({"psycopg": psycopg}) == ["psycopg 1 has the license AGPL-3.0-only."]
    unknown = installed(tmp_path, "unknown")
    assert refused({"unknown": unknown}) == ["unknown 1 does not state its license. Read it, and add it to READ."]
    assert forbidden({"unknown": unknown}) == ["unknown 1 does not state its license."]

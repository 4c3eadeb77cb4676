"""The report of a migration, made of its evidence: one HTML file that fetches nothing, or Markdown for a pull request.

    as_html(document, evidence)         # self-contained: styles and plots inline, no script, light, dark and paper
    as_markdown(document, evidence)

It is written for a person who has to say yes: first the sentences of `headline`, then the reasons, then the tables.
Every name in it was chosen by an author or a caller: templates escape whatever is put into them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson
import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from gate.errors import OperatorError
from gate.migration.approval import find_gate_faults
from workbench.engines.rendering import on_one_line
from workbench.engines.wording import amount, counted, decided_by
from workbench.migration.headline import LOST, Line, corpus_line, headline, live_line
from workbench.migration.history import HistoryRun
from workbench.migration.sentences import percent

_TEMPLATES: Final = Path(__file__).parent / "templates"
_WIDTH: Final = 880
_MATRIX_WIDTH: Final = 480
_ROWS: Final = 40
_SIDES: Final = ("active rule", "active verdict", "candidate rule", "candidate verdict")
# What means something within a line, an underscore between letters aside; and what does where a line begins.
_MARKS: Final = re.compile(r"([\\`*\[\]|~#]|<(?=[A-Za-z/!?])|&(?=[#A-Za-z])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
_BEGINNINGS: Final = re.compile(r"^([0-9]+(?=[.)])|(?=[-+=>]))")

_Part = Mapping[str, Any]


_LOOKED_AT: Final = 1 << 20
_WRITTEN: Final[Mapping[str, Callable[[bytes], bool]]] = {
    ".html": lambda held: held.startswith(b"<!doctype html>"),
    ".md": lambda held: held.startswith(b"# Migration "),
    ".json": lambda held: b'"evidence_version"' in held,
    ".parquet": lambda held: held.startswith(b"PAR1"),
    ".csv": lambda held: b"decision_id" in held.partition(b"\n")[0],
}
"""How a file that was written here is known again, by the ending of its name."""


def as_html(document: _Part, evidence: _Part) -> str:
    """The report as one HTML file.

    Args:
        document: {migration_id, state, manifest}, and more where the migration is stored; see
            `gate.decisions.migrations.documents.migration_document`. Its state is `draft` where nothing is proposed.
        evidence: The evidence.
    """
    # Drawing takes half a second to load, and the other forms draw nothing.
    from workbench.charts import colours

    styles = {
        "css": Markup((_TEMPLATES / "report.css").read_text(encoding="utf-8")),  # noqa: S704 - the product's own file
        "chart_css": Markup(colours.stylesheet()),  # noqa: S704 - made of constants
    }
    return _environment().get_template("report.html").render({**_context(document, evidence), **styles})


def as_fragment(document: _Part, evidence: _Part, link: Callable[[str], str]) -> Markup:
    """The report as a part of a page, which has the title and the styles.

    Args:
        document: As `as_html`.
        evidence: The evidence.
        link: The address of a decision, by its id.
    """
    context = {**_context(document, evidence), "titled": False, "link": link}
    return Markup(_environment().get_template("report_main.html").render(context))  # noqa: S704 - escaped by it


def _context(document: _Part, evidence: _Part) -> dict[str, Any]:
    return {
        "migration_id": document["migration_id"],
        "state": _state(document, evidence),
        "summary": document["manifest"].get("summary"),
        "acts": list(_acts(document)),
        "headline": [*_headline(document, evidence)],
        "rulebooks": [_shown(of) for of in evidence["rulebooks"]],
        "rows": _ROWS,
        "corpus": evidence["corpus"],
        "corpus_line": corpus_line(evidence["corpus"]).text,
        "identity": list(_identity(evidence)),
        "titled": True,
        "link": None,
    }


def as_markdown(document: _Part, evidence: _Part) -> str:
    """The report as Markdown, short enough for a pull request."""
    return "\n".join(_markdown(document, evidence)) + "\n"


def require_replaceable(path: Path) -> None:
    """Requires that a file is not there yet, or is empty, or looks like one that this module wrote.

    Raises:
        OperatorError: `FILE_UNWRITABLE`: it holds something else, such as the candidate or its manifest.
    """
    if not path.is_file():
        return
    try:
        with path.open("rb") as file:
            held = file.read(_LOOKED_AT)
    except OSError as error:
        raise OperatorError("FILE_UNWRITABLE", f"{path} cannot be written: {error.strerror}.") from error
    if held and not _WRITTEN[path.suffix](held):
        raise OperatorError(
            "FILE_UNWRITABLE",
            f"{path} is not a migration report, so it is not overwritten; choose another file.",
        )


def write_report(path: Path, document: _Part, evidence: _Part) -> None:
    """Writes the report in the format of the file's ending: `.html`, `.md`, or `.json`, which is the evidence.

    Raises:
        OperatorError: `REPORT_FORMAT_UNKNOWN` or `FILE_UNWRITABLE`.
    """
    made: Mapping[str, Callable[[], str]] = {
        ".html": lambda: as_html(document, evidence),
        ".md": lambda: as_markdown(document, evidence),
        ".json": lambda: orjson.dumps(evidence, option=orjson.OPT_INDENT_2).decode() + "\n",
    }
    if path.suffix not in made:
        raise OperatorError(
            "REPORT_FORMAT_UNKNOWN", f"{path} has no ending of a report format; end its name with {', '.join(made)}."
        )
    require_replaceable(path)
    _write(path, made[path.suffix]().encode())


def write_decisions(path: Path, runs: Mapping[str, HistoryRun]) -> None:
    """Writes every decision that changes, or cannot be decided again, in the format of the file's ending: `.parquet` or
    `.csv`.

    Raises:
        OperatorError: `REPORT_FORMAT_UNKNOWN` or `FILE_UNWRITABLE`.
    """
    found = [
        run.decisions()
        .filter(pl.col("changed") | pl.col("not_redecided").is_not_null())
        .with_columns(pl.lit(rulebook_id).alias("rulebook_id"))
        for rulebook_id, run in runs.items()
    ]
    rows = pl.concat(found).collect(engine="streaming")
    writes: Mapping[str, Callable[[], object]] = {
        ".parquet": lambda: rows.write_parquet(path),
        ".csv": lambda: rows.write_csv(path),
    }
    if path.suffix not in writes:
        raise OperatorError(
            "REPORT_FORMAT_UNKNOWN",
            f"{path} has no ending of a decision format; end its name with {', '.join(writes)}.",
        )
    require_replaceable(path)
    try:
        writes[path.suffix]()
    except OSError as error:
        raise OperatorError("FILE_UNWRITABLE", f"{path} cannot be written: {error.strerror}.") from error


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise OperatorError("FILE_UNWRITABLE", f"{path} cannot be written: {error.strerror}.") from error


def _headline(document: _Part, evidence: _Part) -> Iterator[Line]:
    """What a person reads first: what keeps the migration from being applied, and what it comes to."""
    if document["state"] in ("proposed", "approved"):
        for sentence in document["stale"]:
            yield Line(f"The evidence is stale: {sentence}", "danger")
    for fault in find_gate_faults(evidence):
        yield Line(f"The gate is closed: {fault}", "danger")
    if not evidence["rulebooks"]:
        yield Line("The migration has no rulebook.")
    yield from headline(evidence)


_STATES: Final[Mapping[str, str]] = {
    "draft": "A dry run: nothing is proposed yet.",
    "proposed": "Proposed. It waits for approval or rejection.",
    "approved": "Approved, and not applied yet.",
    "rejected": "Rejected.",
    "superseded": "Superseded: another migration of its rulebooks was applied.",
    "applied": "Applied.",
    "rolled_back": "Applied, and rolled back.",
}


def _state(document: _Part, evidence: _Part) -> str:
    if "shadow" in evidence:
        return live_line(evidence["shadow"]).text
    return _STATES.get(document["state"], document["state"])


def _took_back(document: _Part, route: _Part) -> bool:
    """Whether a route of a migration's document is the rollback of that migration; else it cites it."""
    return bool(route["migration_id"] != document["migration_id"])


def _acts(document: _Part) -> Iterator[tuple[str, str]]:
    """Who did what to a stored migration, in the order in which it happened."""
    acts = [(entry["recorded_at"], str(entry["event"]), entry) for entry in document.get("entries", ())]
    for route in document.get("routes", ()):
        back = "rolled back" if _took_back(document, route) else "rolled back to"
        acts.append((route["recorded_at"], "applied" if route["cause"] == "apply" else back, route))
    # A stable sort: two acts of one millisecond keep the order of the chain.
    for recorded_at, act, entry in sorted(acts, key=lambda each: each[0]):
        note = f": {entry['note']}" if entry["note"] else ""
        yield act, f"{entry['actor']['id']} at {recorded_at}{note}"


def _shown(of: _Part) -> dict[str, Any]:
    """What the template shows of one rulebook."""
    history, difference = of["history"], of["difference"]
    traffic = {region["region"]: region for region in history["regions"]}
    regions = [
        {
            **region,
            "witness": orjson.dumps(region["witness"]).decode(),
            "share": traffic[index]["share"],
            "decisions": traffic[index]["decisions"],
        }
        for index, region in enumerate(() if difference is None else difference["regions"][:_ROWS])
    ]
    findings = [finding for finding in of["analysis"]["findings"] if finding["severity"] != "note"]
    return {
        **of,
        "redecided": history["redecided"],
        "regions": regions,
        "figures": list(_figures(history)) if history["redecided"] else [],
        "transitions": history["transitions"][:_ROWS],
        "earlier": _earlier(history),
        "outcomes": list(_outcomes(history["outcomes"])),
        "money": history["money"],
        "metric": history["metric"],
        "versions": history["versions"][:_ROWS],
        "facts": list(_changed_facts(history)),
        "missing": history["missing_facts"],
        "findings": findings[:_ROWS],
        "coverage": _coverage(of["tests"]),
    }


def _figures(history: _Part) -> Iterator[Markup]:
    from workbench.charts.counterfactuals import verdict_changes, weekly_changes
    from workbench.charts.svg import to_svg

    yield Markup(to_svg(verdict_changes(history), width=_MATRIX_WIDTH))  # noqa: S704 - nothing but shapes and texts
    if history["changed"]["decisions"]:
        yield Markup(to_svg(weekly_changes(history), width=_WIDTH))  # noqa: S704


def _changed_facts(history: _Part) -> Iterator[dict[str, Any]]:
    """The facts by whose classes something changes, with these classes."""
    for fact in history["facts"]:
        classes = [of for of in fact["classes"] if of["changed"]]
        if classes:
            yield {**fact, "classes": classes}


def _earlier(history: _Part) -> str:
    """A sentence about decisions of earlier versions, which are not the candidate's doing."""
    others = sum(of["decisions"] for of in history["earlier"]) + history["left_out"]["earlier"]
    if not others or history["base"] is None:
        return ""
    named = ", ".join(f"{of['policy_version']} ({of['decisions']:,})" for of in history["earlier"][:3])
    return (
        f"{counted(others, 'decision')} of earlier versions {'was' if others == 1 else 'were'} decided differently "
        f"than the active version would decide them: {named}. The candidate does not cause these differences, so "
        "they are not counted above."
    )


def _outcomes(outcomes: _Part) -> Iterator[str]:
    for name in ("good_newly_blocked", "bad_newly_blocked", "bad_newly_approved", "newly_approved_unknown"):
        yield outcomes[name]["sentence"]
    yield outcomes["unknowable"]


def _coverage(tests: _Part | None) -> str:
    if tests is None:
        return ""
    met, of = (sum(part[name] for part in tests["coverage"].values()) for name in ("met", "of"))
    return (
        f"They reach {met:,} of {counted(of, 'goal')} of coverage: rules that match, conditions that are true and "
        "false."
    )


def _identity(evidence: _Part) -> Iterator[tuple[str, str]]:
    # A live report is no evidence: its figures are the shadow's.
    if "shadow" in evidence:
        yield "evidence of the proposal, not of this report", evidence["proposal_evidence_hash"]
    else:
        yield "evidence", evidence["evidence_hash"]
    yield "manifest", evidence["manifest_hash"]
    for of in evidence["rulebooks"]:
        read_at = of["history"]["read_at"]
        yield f"{of['rulebook_id']} {of['candidate']['version']}", of["candidate"]["hash"]
        if of["base"] is None:
            yield f"{of['rulebook_id']}, active version", "none"
        else:
            yield f"{of['rulebook_id']} {of['base']['version']}, active", of["base"]["hash"]
        if "history" in read_at:
            yield f"imported history of {of['rulebook_id']}", f"{read_at['history']}, {read_at['rows']} rows"
            yield "history_hash", read_at["history_hash"]
        else:
            yield f"history of {of['rulebook_id']}", f"{read_at['chain_id']} at {read_at['chain_position']}"
            yield "chain root there", str(read_at["merkle_root"])
        if of["tests"] is not None:
            yield f"cases of {of['rulebook_id']}", of["tests"]["cases_hash"]
    yield f"corpus {evidence['corpus']['corpus']}", evidence["corpus"]["corpus_hash"]


def _markdown(document: _Part, evidence: _Part) -> Iterator[str]:
    yield f"# Migration {_plain(document['migration_id'])}"
    yield ""
    summary = document["manifest"].get("summary")
    if summary:
        yield _plain(summary)
        yield ""
    yield _plain(_state(document, evidence))
    yield ""
    for line in _headline(document, evidence):
        yield f"- {_mark(line)}{_plain(line.text)}"
    for of in evidence["rulebooks"]:
        yield from _markdown_of(of)
    yield ""
    yield "## What this report is based on"
    yield ""
    yield from _table(["", ""], [*_acts(document), *_identity(evidence)])


def _markdown_of(of: _Part) -> Iterator[str]:
    history, difference = of["history"], of["difference"]
    yield ""
    yield f"## {_plain(of['rulebook_id'])} {_plain(of['candidate']['version'])}"
    if of["edits"]:
        yield ""
        for edit in of["edits"][:_ROWS]:
            yield f"- {_plain(edit['text'])}"
    if difference is not None and difference["regions"]:
        traffic = {region["region"]: region for region in history["regions"]}
        yield ""
        yield "Regions of facts whose result changes, the most dangerous first:"
        yield ""
        found = [
            [
                region["severity"],
                _result(region["from"]),
                _result(region["to"]),
                region["condition"],
                percent(traffic[index]["share"]),
            ]
            for index, region in enumerate(difference["regions"][:_ROWS])
        ]
        yield from _table(["danger", "from", "to", "where", "traffic"], found)
    if history["transitions"]:
        yield ""
        yield "Past decisions that change:"
        yield ""
        moved = [
            [
                decided_by(row["rule"]),
                row["verdict"],
                decided_by(row["then_rule"]),
                row["then_verdict"],
                f"{row['decisions']:,}",
                percent(row["share"]),
            ]
            for row in history["transitions"][:_ROWS]
        ]
        yield from _table([*_SIDES, "decisions", "share"], moved)
    yield ""
    for sentence in _outcomes(history["outcomes"]):
        yield f"- {_plain(sentence)}"
    if earlier := _earlier(history):
        yield f"- {_plain(earlier)}"
    for lost in history["not_redecided"]:
        yield f"- {lost['decisions']:,} not decided again: {LOST[lost['reason']]}."


def _mark(line: Line) -> str:
    return "" if line.level == "note" else f"**{line.level}**: "


def _table(columns: Sequence[str], found: Sequence[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in found:
        yield f"| {' | '.join(_inline(str(cell)) for cell in row)} |"


def _inline(text: str) -> str:
    """A text that Markdown shows as it is within a line."""
    return _MARKS.sub(r"\\\1", on_one_line(text).strip())


def _plain(text: str) -> str:
    """A text that Markdown shows as it is where a line begins."""
    return _BEGINNINGS.sub(r"\1\\", _MARKS.sub(r"\\\1", on_one_line(text).strip()))


def _result(result: _Part) -> str:
    if result["rule_id"] is not None:
        return f"{result['decision']} ({result['rule_id']})"
    # What no rule decides comes from the default outcome or from the schema check; the reason code tells which.
    return f"{result['decision']} (no rule, {result['reason_code']})"


def _told_outcomes(outcomes: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {status}" for status, number in outcomes.items() if number)


def _number(value: int) -> str:
    return f"{value:,}"


def _amount(value: float | None) -> str:
    return "-" if value is None else amount(value)


def _between(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{amount(low)} to {amount(high)}"


def _shown_text(value: object) -> object:
    """What a template puts out; a name shows control characters, and nothing runs on to another line."""
    return on_one_line(value) if type(value) is str else value


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        finalize=_shown_text,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    made.globals.update(
        amount=_amount,
        between=_between,
        counted=counted,
        decided_by=decided_by,
        number=_number,
        outcomes=_told_outcomes,
        percent=percent,
        result=_result,
    )
    return made

"""What a migration comes to, in the few sentences that a person reads first: what changes, for how many, how dangerous
that is, and how sure it is.

    for line in headline(evidence): print(line.text)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from workbench.columns import NO_VERDICT
from workbench.engines.findings import owners_answers, worth
from workbench.engines.wording import counted, decided_by, joined
from workbench.migration.sentences import percent, rate

Level: TypeAlias = Literal["danger", "warning", "good", "note"]

_Part = Mapping[str, Any]
_NAMED: Final = 4


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence, or two.

    Attributes:
        text: The sentence.
        level: How it should be read: as a danger, a warning, good news, or a note.
    """

    text: str
    level: Level = "note"


def headline(evidence: Mapping[str, Any]) -> list[Line]:
    """The sentences of a migration's evidence, those of each rulebook together."""
    lines = [line for of in evidence["rulebooks"] for line in rulebook_lines(of)]
    corpus = evidence["corpus"]
    # Whatever does not drift passes the gate, also where drift is expected: often of another candidate.
    unmet = [Line(f"The corpus: {error}", "warning") for error in corpus["errors"][:_NAMED] if corpus["ok"]]
    return [*lines, corpus_line(corpus), *unmet]


def live_line(shadow: _Part) -> Line:
    """The first sentence of a report over the decisions of a shadow, as `workbench.shadows.live` tells it."""
    return Line(
        f"This report is live: it covers the {counted(shadow['decisions'], 'decision')} made since "
        f"{shadow['started_by']} started the shadow at {shadow['started_at']}, up to {shadow['looked_at']}."
    )


def rulebook_lines(of: _Part) -> list[Line]:
    """The sentences about one rulebook."""
    undecided = [Line(f"Undecided: {sentence}", "warning") for sentence in of["analysis"]["undecided"]]
    told = [*_what(of), *_how_many(of), *_how_dangerous(of), *_findings(of), _cases(of)]
    return [*told, *_how_sure(of), *undecided, *_unknowable(of["history"])]


def history_lines(of: _Part) -> list[Line]:
    """The sentences about a dry run alone.

    Args:
        of: {rulebook_id, base, candidate, difference, history}, as evidence has them.
    """
    return [*_what(of), *_how_many(of), *_how_dangerous(of), *_how_sure(of), *_unknowable(of["history"])]


def _what(of: _Part) -> Iterator[Line]:
    base, candidate = of["base"], of["candidate"]["version"]
    if base is None:
        yield Line(
            f"{of['rulebook_id']}: version {candidate} would be the first version on its route. No version is "
            "active yet, so the dry run compares it with the stored decisions of all versions."
        )
    elif base["hash"] == of["candidate"]["hash"]:
        yield Line(f"{of['rulebook_id']}: version {candidate} is already active.")
    else:
        yield Line(f"{of['rulebook_id']}: version {candidate} would replace {base['version']}.")


def _how_many(of: _Part) -> Iterator[Line]:
    history, equal = of["history"], of["difference"] is not None and of["difference"]["equal"]
    read_at = history["read_at"]
    if "history" in read_at:
        yield Line(
            f"These are imported cases of the history {read_at['history']} (history_hash "
            f"{read_at['history_hash'][:12]}), which are unverified; they are not in the chain.",
            "warning",
        )
    if equal:
        yield Line("It decides all facts as the active version does; the exact analysis proves it.", "good")
        return
    changed, redecided = history["verdict_changed"], history["redecided"]
    window = _window(history)
    if window:
        yield Line(f"Only decisions {window} were compared: {history['decisions']:,}.", "warning")
    if not redecided:
        yield Line("None of its past decisions can be decided again, so the past shows nothing.", "warning")
        return
    thens = {row["to"]: row["decisions"] for row in history["was_matrix"] if row["from"] == NO_VERDICT}
    if thens:
        told = ", ".join(f"{decisions:,} {verdict}" for verdict, decisions in sorted(thens.items()))
        were = "was" if sum(thens.values()) == 1 else "were"
        yield Line(
            f"The file does not say how {counted(sum(thens.values()), 'imported case')} {were} decided; the candidate "
            f"decides: {told}."
        )
        if of["base"] is None and sum(thens.values()) == redecided:
            return
    if not history["changed"]["decisions"]:
        yield Line(f"None of {counted(redecided, 'past decision')} would change.", "good")
        return
    would = f"{changed['decisions']:,} would get another verdict ({rate(changed)})"
    yield Line(f"Of {counted(redecided, 'past decision')}{_weeks(history)}, {would}.", "warning")
    blocked, approved = history["newly_blocked"], history["newly_approved"]
    if blocked["decisions"]:
        yield Line(f"{_that(blocked['decisions'], 'approved')} would be {_parts(blocked)}.", "warning")
    if approved["decisions"]:
        of = {"to_no": approved["from_no"], "to_review": approved["from_review"]}
        yield Line(f"{_that(approved['decisions'], _parts(of))} would be approved.", "danger")
    yield from map(Line, owners_answers(history))
    yield from _worth(history)
    refused = history["otherwise_refused"]
    for to, are, would in (("to_no", "held", "blocked"), ("to_review", "blocked", "held")):
        if refused[to]:
            yield Line(f"{_that(refused[to], are)} would be {would}.")
    rest = history["changed"]["decisions"] - changed["decisions"]
    if rest:
        yield Line(f"{rest:,} more would change only in action, reason, or rule.")
    for transition in history["transitions"][:1]:
        before, after = decided_by(transition["rule"]), decided_by(transition["then_rule"])
        yield Line(
            f"The most frequent change, {counted(transition['decisions'], 'decision')}: {before} "
            f"({transition['verdict']}) becomes {after} ({transition['then_verdict']})."
        )
    versions = [of for of in history["versions"] if of["redecided"]]
    turned = [of["newly_approved"] + of["newly_blocked"] for of in versions]
    if history["base"] is None and len(versions) > 1 and any(turned):
        named = [
            f"{number:,} of {of['redecided']:,} by {of['policy_version']}"
            for number, of in zip(turned[:_NAMED], versions[:_NAMED], strict=True)
        ]
        more = [f"{len(versions) - _NAMED} more"] if len(versions) > _NAMED else []
        yield Line(f"Approvals gained or lost, by the version that decided: {joined([*named, *more])}.")


def _worth(history: _Part) -> Iterator[Line]:
    """The sum of the metric in the decisions that would also be approved, and in those that would no longer be."""
    if not history["money"]:
        return
    moved = [of for of in history["money"] if of["verdict"] != of["then_verdict"]]
    sides = (
        ("would be approved", "then_verdict", "newly_approved"),
        ("would no longer be approved", "verdict", "newly_blocked"),
    )
    for would, side, cases in sides:
        of = [each for each in moved if each[side] == "yes"]
        yield from map(Line, worth(history["metric"], history[cases]["decisions"], of, would))


def _window(history: _Part) -> str:
    """`since 2026-06-01T00:00:00.000Z`; nothing where the whole past was looked at."""
    ends = (("since", history["since"]), ("until", history["until"]))
    return " and ".join(f"{word} {at}" for word, at in ends if at is not None)


def _weeks(history: _Part) -> str:
    """From when to when decisions were made, by the week."""
    weeks = history["weeks"]
    if not weeks or history["left_out"]["weeks"]:
        return ""
    first, last = weeks[0]["week"], weeks[-1]["week"]
    return f" (week of {first})" if first == last else f" (weeks of {first} to {last})"


def _that(number: int, are: str) -> str:
    return f"{counted(number, 'decision')} that {'is' if number == 1 else 'are'} {are}"


def _parts(blocked: _Part) -> str:
    """Where approvals go, or what is approved comes from: `held`, or `blocked (3) or held (4)`."""
    parts = [(word, blocked[to]) for to, word in (("to_no", "blocked"), ("to_review", "held")) if blocked[to]]
    return parts[0][0] if len(parts) == 1 else " or ".join(f"{word} ({number:,})" for word, number in parts)


def _how_dangerous(of: _Part) -> Iterator[Line]:
    difference = of["difference"]
    if difference is not None and not difference["equal"]:
        dangers = [region for region in difference["regions"] if region["severity"] == "danger"]
        if dangers:
            yield Line(
                f"For all facts, not only past ones: in {counted(len(dangers), 'region')}, facts that are now "
                "blocked or held would be approved.",
                "danger",
            )
        else:
            yield Line("For all facts: nothing that is now blocked or held would be approved.", "good")
        ends = [region["to"]["decision"] for region in difference["regions"] if region["from"]["decision"] == "yes"]
        fewer = Counter(end for end in ends if end != "yes")
        if fewer:
            where = counted(sum(fewer.values()), "region")
            parts = _parts({"to_no": fewer["no"], "to_review": fewer["review"]})
            yield Line(f"For all facts: in {where}, facts that are now approved would be {parts}.", "warning")
    outcomes = of["history"]["outcomes"]
    for name in ("good_newly_blocked", "bad_newly_approved", "bad_newly_blocked"):
        if outcomes[name]["decisions"]:
            beside = _beside(outcomes) if name == "bad_newly_approved" else ""
            level: Level = "good" if name == "bad_newly_blocked" else "danger"
            yield Line(f"{outcomes[name]['sentence']}{beside}", level)


def _beside(outcomes: _Part) -> str:
    """How often those fail that are approved today, which the newly approved are to be compared with."""
    bad = outcomes["bad_newly_blocked"]["of"]
    known = bad + outcomes["good_newly_blocked"]["of"]
    return f" Of {known:,} that were approved, {bad:,} ({percent(bad / known)}) did not." if known else ""


def _findings(of: _Part) -> Iterator[Line]:
    every = of["analysis"]["findings"]
    for finding in every:
        # Most often a misspelled name, which nothing else reveals.
        if finding["kind"] == "undeclared_field":
            yield Line(f"The analysis of the candidate: {finding['message']}", "danger")
    findings = [of for of in every if of["severity"] == "danger" and of["kind"] != "undeclared_field"]
    for finding in findings[:3]:
        yield Line(f"The analysis of the candidate: {finding['message']}", "danger")
    warnings = [
        of for of in every if of["severity"] == "warning" and of["kind"] != "undeclared_field" and not of["accepted"]
    ]
    for finding in warnings[:1]:
        more = f" It has {counted(len(warnings) - 1, 'more warning')}." if len(warnings) > 1 else ""
        yield Line(f"The analysis of the candidate: {finding['message']}{more}", "warning")


def _cases(of: _Part) -> Line:
    tests = of["tests"]
    if tests is None:
        return Line("The candidate has no cases.", "warning")
    if tests["failed"]:
        # The line of the gate says why.
        verb = "fails" if tests["failed"] == 1 else "fail"
        names = [failure["case"] for failure in tests["failures"][:_NAMED]]
        more = [f"{tests['failed'] - _NAMED:,} more"] if tests["failed"] > _NAMED else []
        return Line(
            f"{tests['failed']:,} of {counted(tests['cases'], 'case')} {verb}: {joined([*names, *more])}.", "danger"
        )
    if tests["cases"] == 1:
        return Line("The one case holds.", "good")
    return Line(f"All {counted(tests['cases'], 'case')} hold.", "good")


def _how_sure(of: _Part) -> Iterator[Line]:
    history, difference = of["history"], of["difference"]
    for lost in history["not_redecided"]:
        number = counted(lost["decisions"], "past decision")
        if lost["reason"] == "adapter_changed" and history["adapter_manifest_hash"] is None:
            # Callers could then claim facts that the adapter looks up.
            yield Line(
                f"An adapter made the facts of {number}, but callers would send the candidate's facts. These "
                "decisions cannot be decided again.",
                "danger",
            )
        else:
            yield Line(f"{number} cannot be decided again: {LOST[lost['reason']]}.", "warning")
    lacking = [field for field in history["missing_facts"] if field["required"]]
    if lacking:
        named = [f"{field['field']} ({field['decisions']:,})" for field in lacking[:_NAMED]]
        more = [f"{len(lacking) - _NAMED} more"] if len(lacking) > _NAMED else []
        lack = f"Past decisions lack facts that the candidate requires: {joined([*named, *more])}."
        if history["base"] is None or history["needs_input"]["decisions"]:
            yield Line(lack, "warning")
        else:
            yield Line(f"{lack} The active version does not accept them either.")
    if history["metric"] is not None and history["redecided"] and not history["money"]:
        yield Line(f"No past decision has a value of {history['metric']}: check the metric's name.", "warning")
    undecided = [] if difference is None else list(difference["undecided"])
    for sentence in [*undecided, *history["undecided"]]:
        yield Line(f"Undecided: {sentence}", "warning")


def _unknowable(history: _Part) -> Iterator[Line]:
    if history["newly_approved"]["decisions"]:
        yield Line(history["outcomes"]["unknowable"])


LOST: Mapping[str, str] = {
    "facts_erased": "their facts were erased",
    "facts_withheld": "a fact that a rulebook reads is personal, and the lake leaves it out",
    "adapter_changed": "another adapter made their facts, or no adapter did",
}
"""Why decisions cannot be decided again, by reason."""


def corpus_line(corpus: _Part) -> Line:
    """What the dry run over the corpus found."""
    counts = corpus["counts"]
    if not counts["concerned"]:
        return Line(f"No fixture of the corpus {corpus['corpus']} concerns the candidate.")
    if corpus["ok"]:
        touched = f"{counts['concerned']:,} of {counted(counts['fixtures'], 'fixture')} concerned"
        return Line(f"The corpus {corpus['corpus']} does not drift: {touched}.", "good")
    if corpus["unexpected"]:
        drifting = _drifting(counts["unexpected"])
        return Line(f"{drifting} in ways that were not expected.", "danger")
    if corpus["errors"]:
        return Line(f"The corpus does not drift as expected: {corpus['errors'][0]}", "danger")
    return Line(f"{_drifting(len(corpus['drift']))}, exactly as the manifest expects.", "warning")


def _drifting(count: int) -> str:
    return f"{counted(count, 'fixture')} of the corpus {'drifts' if count == 1 else 'drift'}"


def worst(lines: Sequence[Line]) -> Level:
    """The gravest level of some lines."""
    levels: tuple[Level, ...] = ("danger", "warning", "good", "note")
    return next((level for level in levels if any(line.level == level for line in lines)), "note")

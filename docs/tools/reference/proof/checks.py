"""The pages of docs/reference about the checks of records, packets and chains, and about the codes of their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from docs.tools.markdown import paragraph, table
from gate.verify.catalog import CHAIN, CODES, NOT_FOUND, PACKET, RECORD, Check, Group

SOURCE: Final = "gate/verify/catalog.py"

_RECORD: Final = """\
# Checks of a record

This page lists every check that a verification of a [Decision Record](../glossary.md#decision-record) makes, by its
name in the result.

`checks` in the result has `true` if a check holds, `false` if it fails, and `null` if it was skipped. A skipped check
does not prevent `verified`, except `receipt_signature`, `receipt_key` and `record_hash`. For each comparison that
fails, `expected` has the recomputed value and `actual` the stated one.

The checks of [packets](packet-checks.md) and of [the chain](chain-checks.md), and the
[verification codes](verification-codes.md), have their own pages.

"""
_PACKET: Final = """\
# Checks of a packet

This page lists every check that a verification of a [packet](../glossary.md#packet) makes, by its name in the result.

The result has `checks`, `expected` and `actual` as for [a record](checks.md), and the four steps in `steps`. A name
states where a fault is. A part with many items has one entry if it holds. Of failures, the result lists the first 50,
each by its place; the message counts the others. In `expected` and `actual`, a value above 1 KiB is shown as `{sha256,
bytes}` of its canonical JSON.

"""
_CHAIN: Final = """\
# Checks of the chain

This page lists what `gate chain check` recomputes for every entry of the ledger, and what it cannot find.

The command stops at the first fault of a [chain](../glossary.md#chain), and prints the table, the row, and what to do.
The state of a key does not matter here: a record that was signed by a key before it was compromised still belongs to
its chain.

"""
_CHAIN_RESULT: Final = """
## Result

With `--json`, each chain has `whole`, `entries_checked`, `broken_at` (a position, or null), `reason`, and the `table`
and `row` at fault. Each of `checkpoint_logs` has `whole`, `compared`, `unverified` (signed with a key that is not
trusted now), the first `contradictions`, and `cut`: the entries that a restore accounts for.

## Limits of the check

"""
_CODES: Final = """\
# Verification codes

This page explains the result of a verification: the codes in `error` and `notice`.

A result has at most one code. `error` says why a record, packet or resolution is not verified. `notice` says what a
verified one leaves open. If several codes of one kind apply to a record, the first one on this page wins: a change wins
over a key. In a packet, `PACKET_INTEGRITY_FAILED` wins over the codes about the record's keys, too.
Unusable material, such as an invalid public key, is not a result but an [error of the
service](errors/README.md), and `gate verify` exits with 2.

The [checks](checks.md) say what was compared.

"""


def pages() -> dict[str, str]:
    """The checks of records, of packets and of chains, and the codes."""
    codes = "\n".join(f"## `{code}`\n\n{paragraph(meaning)}" for code, meaning in CODES.items())
    return {
        "checks.md": _RECORD + _groups(RECORD),
        "packet-checks.md": _PACKET + _groups(PACKET),
        "chain-checks.md": _CHAIN
        + table(("Subject", "Checked"), CHAIN)
        + _CHAIN_RESULT
        + "".join(f"- {what}\n" for what in NOT_FOUND),
        "verification-codes.md": _CODES + codes,
    }


def _groups(groups: Sequence[Group]) -> str:
    return "\n".join(
        f"## {group.title}\n\n{paragraph(group.about)}\n"
        f"{table(('Check', 'Holds if', 'Skipped if'), map(_row, group.checks))}"
        for group in groups
    )


def _row(check: Check) -> tuple[str, str, str]:
    names = ", ".join(f"`{name}`" for name in check.name.split(", "))
    skipped = f"{check.skipped}." if check.skipped else ""
    if not check.holds and not check.advice:
        return names, "", f"{skipped} {check.more}".strip()
    holds = f"{check.holds}." if check.holds else ""
    if check.advice:
        holds = f"{holds} Advisory record: {check.advice}." if holds else f"{check.advice}."
    return names, f"{holds} {check.more}".strip(), skipped

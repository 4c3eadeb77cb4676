"""The descriptions of the server and of each tool, for models: what binds, and what does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

INSTRUCTIONS: Final = (
    "Decision Gate decides whether an action may be performed, before it is. Call decide before a state-changing "
    "action, and act only on a binding record with verdict yes, on the target that the record names, once. A record is "
    "binding if its mode is rulebook. Records of the modes single, multi, and runtime have a decision_contract: they "
    "are advice, and never permit an action. The verdict no blocks the action, and review holds it for its owner. "
    "An error, a missing answer, an explanation, a replay, and your own reading of a policy never approve anything: "
    "without a record with verdict yes, do not act. Look facts up; never guess them. Then report with report_execution "
    "what you did, even if you did nothing, and with report_outcome what the action led to."
)

ADVICE: Final = (
    "This record is advice and authorizes nothing: do not act on it. Ask in mode rulebook for a binding verdict."
)
"""What a tool adds to an advisory record, whatever its verdict."""

_ONLY: Final = "Errors never approve anything."

TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "decide": (
        "Decide whether an action may be performed",
        "Evaluates a rulebook over facts and stores a signed Decision Record. Only the verdict yes in a record of "
        "mode rulebook permits the action, on this target, once. no blocks it, and review holds it for its owner. "
        "Records of the modes single, multi, and runtime have a decision_contract: they are advice and never permit an "
        "action. Send the facts in request.context.inputs, the target in request.context.target_system and "
        "target_object_id, and a rulebook, or rulebook_ref with rulebook_id and version of a registered one (see "
        "list_rulebooks). Send an idempotency_key, and the same one when you retry: a retry then returns the same "
        "record. " + _ONLY,
    ),
    "report_execution": (
        "Report what was done",
        "Stores an execution receipt about a decision: whether its action was executed, skipped, blocked, failed or "
        "reverted, and on which target. Report what really happened, even if nothing was done. A receipt changes "
        "no decision and approves nothing. " + _ONLY,
    ),
    "report_outcome": (
        "Report what the action led to",
        "Stores what an action led to after its decision: succeeded, failed, partial, reverted, pending or review, "
        "with observed metrics. It changes no decision and approves nothing. " + _ONLY,
    ),
    "verify": (
        "Verify a Decision Record",
        "Checks hashes, signatures, and the place in the audit chain. Send decision_id for a stored decision. Send "
        "record for a record alone, and both to check a record against its decision. verified: true means that the "
        "service made this record, whatever its verdict. Only a verified record with the verdict yes and without a "
        "decision_contract permits the action. " + _ONLY,
    ),
    "explain": (
        "Explain a stored decision",
        "Returns in sentences and as data why a stored decision has its verdict: the rule that matched, and every test "
        "with its fact. It reads what was stored with the decision and evaluates nothing. An explanation permits no "
        "action; only the record does. " + _ONLY,
    ),
    "replay": (
        "Replay a stored decision",
        "Repeats a stored decision and returns the differences. It uses the rulebook of that time, or with replay_mode "
        "current the rulebooks that the scope has registered now. It takes the decision's request, or another input. "
        "Nothing is stored or signed, and a replayed verdict permits no action, not even yes. " + _ONLY,
    ),
    "list_rulebooks": (
        "List the registered rulebooks",
        "Lists the rulebooks of the caller's scope by id and version, and the version that is active for each id. Send "
        "one of them as request.rulebook_ref of decide. A list decides nothing. " + _ONLY,
    ),
}
"""The title and the description of each tool."""

MEMBERS: Final[Mapping[str, str]] = {
    "request": "The Decision Request, as for `POST /api/decide`. Its hash is the record's input_hash.",
    "idempotency_key": (
        "Makes a retry safe: the same key with the same content returns the same record. 1 to 300 printable ASCII "
        "characters."
    ),
    "response_view": "How much of the record is returned; full by default. Only the full record can be verified.",
    "decision_id": "The id of a decision of this scope.",
    "report": "The report. Include the target: without it, action_binding_match is false.",
    "record": "A full Decision Record, as exported.",
    "input": "The Decision Request.",
    "public_key": "A public key in PEM, for diagnosis. A record never verifies because of it.",
    "replay_mode": "historical (default), with the rulebook of that time, or current, with the rulebooks of today.",
    "limit": "How many to list; 100 by default.",
}
"""What each argument is."""

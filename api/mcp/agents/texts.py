"""The descriptions of the server and of each tool, for models. They state which answers are binding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

INSTRUCTIONS: Final = (
    "Decision Gate decides whether an action may be performed. Call decide before every state-changing action. Act "
    "only on a binding record with verdict yes, once, and only on the target in the record. A record is binding only "
    "if its mode is rulebook. Records of the modes single, multi, and runtime have a field decision_contract: they are "
    "advice and do not allow the action. The verdict no blocks the action, and review holds it for its owner. An "
    "error, a missing answer, an explanation, a replay and your own reading of a policy never approve anything: "
    "without a binding record with verdict yes, do not act. Look facts up; never guess them. After the action, call "
    "report_execution, even if nothing was done, and call report_outcome when you know the result."
)

ADVICE: Final = (
    "This record is advice and authorizes nothing: do not act on it. Ask in mode rulebook for a binding verdict."
)
"""The note that a tool adds to every advisory record."""

_ONLY: Final = "Errors never approve anything."

TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "decide": (
        "Decide whether an action may be performed",
        "Evaluates a rulebook over facts and stores a signed Decision Record. Only verdict yes in a record of mode "
        "rulebook allows the action, once, on the target in the record. no blocks it, and review holds it for its "
        "owner. Records of the modes single, multi, and runtime have a decision_contract: they are advice and do not "
        "allow the action. Send the facts in request.context.inputs, and the target in request.context.target_system "
        "and target_object_id. Send a rulebook, or rulebook_ref with rulebook_id and version of a registered rulebook "
        "(see list_rulebooks). Send an idempotency_key, and the same one when you retry: then there is only one "
        "record. " + _ONLY,
    ),
    "report_execution": (
        "Report what was done",
        "Stores an execution receipt about a decision: whether its action was executed, skipped, blocked, failed or "
        "reverted, and on which target. Report what was really done, even if nothing was done. A receipt changes no "
        "decision and approves nothing. " + _ONLY,
    ),
    "report_outcome": (
        "Report the outcome of an action",
        "Stores the outcome of an action: succeeded, failed, partial, reverted, pending or review, with observed "
        "metrics. It changes no decision and approves nothing. " + _ONLY,
    ),
    "verify": (
        "Verify a Decision Record",
        "Checks hashes, signatures, and the place in the audit chain. Send decision_id for a stored decision, "
        "decision_id and record to check that the record belongs to the decision, or record alone. verified: true "
        "means that the service made this record. It does not mean that the verdict is yes: only a verified record "
        "with verdict yes and without a decision_contract allows the action. " + _ONLY,
    ),
    "explain": (
        "Explain a stored decision",
        "Explains a stored decision in sentences and as data: its verdict, the rule that matched, and every test with "
        "its fact. It reads what was stored with the decision and evaluates nothing. An explanation does not allow "
        "the action; only the record does. " + _ONLY,
    ),
    "replay": (
        "Replay a stored decision",
        "Decides a stored decision again and returns the differences. replay_mode historical repeats the original "
        "decision; current uses the version of the rulebook that the scope registered last, with the stored request or "
        "your own input. Nothing is stored or signed, and a replayed verdict never allows the action, even if it is "
        "yes. " + _ONLY,
    ),
    "list_rulebooks": (
        "List the registered rulebooks",
        "Lists the rulebooks of the caller's scope by id and version, and the active version of each id with a route. "
        "Refer to one in request.rulebook_ref of decide. A list decides nothing. " + _ONLY,
    ),
}
"""The title and the description of each tool."""

MEMBERS: Final[Mapping[str, str]] = {
    "request": "The Decision Request, as in POST /api/decide. Its hash is the record's input_hash.",
    "idempotency_key": (
        "Your key for retries, 1 to 300 printable ASCII characters. Calls with the same key and the same content "
        "return the same record."
    ),
    "response_view": "How much of the record is returned. Default: all of it. Only the full record can be verified.",
    "decision_id": "The id of a decision of this scope.",
    "report": "The report. State the target in it: without a target, action_binding_match is false.",
    "record": "A full Decision Record, as exported.",
    "input": "The Decision Request.",
    "public_key": "A public key in PEM, for diagnosis. It never makes a record verified.",
    "replay_mode": (
        "historical (default) repeats the original decision; current uses the version of the rulebook that the scope "
        "registered last."
    ),
    "limit": "The maximum number of rulebooks. Default: 100.",
}
"""The description of each argument."""

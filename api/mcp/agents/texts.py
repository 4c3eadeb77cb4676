"""The descriptions of the server and of each tool, for models: what binds, and what does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

INSTRUCTIONS: Final = (
    "Decision Gate decides whether an action may be performed, before it is. Call decide before a state-changing "
    "action, and act only on a binding record with verdict yes, on the target that the record names, once. A record is "
    "binding where it was made in mode rulebook; records of the modes single, multi and runtime have a member "
    "decision_contract: they are advice, and let nobody act. The verdict no blocks the action, and review holds it for "
    "its owner. An error, a missing answer, an explanation, a replay and your own reading of a policy never approve "
    "anything: without a record with verdict yes, do not act. Look facts up; never guess them. Afterwards report what "
    "was done with report_execution, also where nothing was, and what came of it with report_outcome."
)

ADVICE: Final = (
    "This record is advice and authorizes nothing: do not act on it. Ask in mode rulebook for a binding verdict."
)
"""What a tool adds to an advisory record, whatever its verdict."""

_ONLY: Final = "Errors never approve anything."

TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "decide": (
        "Decide whether an action may be performed",
        "Evaluates a rulebook over facts and stores a signed Decision Record. Only verdict yes of a record made in "
        "mode rulebook lets the caller act: this action, on this target, once. no blocks it, review holds it for its "
        "owner. Records of the modes single, multi and runtime have a decision_contract: they are advice and let "
        "nobody act. Send the facts in request.context.inputs, the target in request.context.target_system and "
        "target_object_id, and a rulebook, or rulebook_ref with rulebook_id and version of a registered one (see "
        "list_rulebooks). Send an idempotency_key, and the same one when you retry: it then stands for one record. "
        + _ONLY,
    ),
    "report_execution": (
        "Report what was done",
        "Stores an execution receipt about a decision: whether its action was executed, skipped, blocked, failed or "
        "reverted, and on which target. Report what was really done, also where nothing was. A receipt changes no "
        "decision and approves nothing. " + _ONLY,
    ),
    "report_outcome": (
        "Report what came of it",
        "Stores what an action led to after its decision: succeeded, failed, partial, reverted, pending or review, "
        "with observed metrics. It changes no decision and approves nothing. " + _ONLY,
    ),
    "verify": (
        "Verify a Decision Record",
        "Checks hashes, signatures and the place in the audit chain: of a stored decision (decision_id), of a record "
        "as that of a decision (decision_id and record), or of a record alone (record). verified: true says that the "
        "service made this record, and nothing of its verdict: only a verified record whose verdict is yes, without a "
        "decision_contract, lets the caller act. " + _ONLY,
    ),
    "explain": (
        "Explain a stored decision",
        "Says in sentences and as data why a stored decision came out as it did: its verdict, the rule that matched, "
        "and every test with the fact that it saw. It reads what was stored with the decision and evaluates nothing. "
        "An explanation lets nobody act; the record does. " + _ONLY,
    ),
    "replay": (
        "Replay a stored decision",
        "Makes a stored decision again and says where it differs: as it was made, or with replay_mode current by what "
        "the scope has registered by now, over its own request or another input. Nothing is stored or signed, and a "
        "replayed verdict, yes included, lets nobody act. " + _ONLY,
    ),
    "list_rulebooks": (
        "List the registered rulebooks",
        "Lists the rulebooks of the caller's scope by id and version, and which version the route of an id leads to. "
        "Name one in request.rulebook_ref of decide. A list decides nothing. " + _ONLY,
    ),
}
"""The title and the description of each tool."""

MEMBERS: Final[Mapping[str, str]] = {
    "request": "The Decision Request, as POST /api/decide takes it. Its hash is the record's input_hash.",
    "idempotency_key": (
        "Your handle for retries, 1 to 300 printable ASCII characters: equal keys with equal content stand for one "
        "record."
    ),
    "response_view": "How much of the record is shown: all of it where it is left out. Only the full record verifies.",
    "decision_id": "The id of a decision of this scope.",
    "report": "The report. Name the target in it: without it, action_binding_match is false.",
    "record": "A full Decision Record, as it was exported.",
    "input": "The Decision Request.",
    "public_key": "A public key in PEM, for diagnosis. It never makes a record verified.",
    "replay_mode": "historical, as it was made (where it is left out), or current, by what is registered by now.",
    "limit": "How many are listed; 100 where it is left out.",
}
"""What each argument is."""

"""The record of an answer."""

from __future__ import annotations

from gate.proof.signing import Signer
from gate.records.documents import Record
from gate.records.record import Identity, build_advisory_record
from gate.records.request import DecisionRequest
from gate.services.advisory.advisor import Advice


def record_of(request: DecisionRequest, advice: Advice, identity: Identity, signer: Signer | None) -> Record:
    """The full advisory record of an answer, all but `audit_chain`; see `build_advisory_record`.

    Args:
        request: The request that is answered.
        advice: The answer.
        identity: The record's ids and date.
        signer: What signs its receipt; None where that is off, and for a replay.
    """
    prompt = advice.template
    return build_advisory_record(
        request,
        (prompt.version, prompt.hash),
        advice.evaluation,
        advice.said,
        identity,
        signer,
        plain=advice.plain,
    )

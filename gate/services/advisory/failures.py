"""The errors of an upstream that gives no answer. They quote nothing that it sent."""

from __future__ import annotations

from typing import Final

from gate.errors import AdvisoryFailed

_NOTHING: Final = "Nothing was recorded; hold the action"


def failed(why: str) -> AdvisoryFailed:
    """The failure of an upstream that may answer another time.

    Args:
        why: A clause that says what it did.
    """
    return _failure(f"{why}. {_NOTHING}, and retry later with the same idempotency key.")


def misconfigured(
    why: str, correct: str = "advisory_url, advisory_model or the key in advisory_key_file"
) -> AdvisoryFailed:
    """The failure of an upstream that will fail again until somebody corrects how it is configured.

    Args:
        why: A clause that says what it did.
        correct: The settings that the operator must check.
    """
    return _failure(f"{why}. {_NOTHING}. Retrying does not help: the operator must correct {correct}.")


def _failure(said: str) -> AdvisoryFailed:
    return AdvisoryFailed("SVC_ADVISORY_UPSTREAM_FAILED", f"The advisory upstream {said}")

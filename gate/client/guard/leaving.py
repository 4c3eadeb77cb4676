"""Leaving a guarded block, as a flow: the guard stores the end of the body with the receipt for delivery."""

from __future__ import annotations

import logging
import secrets
from dataclasses import replace
from functools import partial

from gate.client.guard.delivery import call_of
from gate.client.guard.permit import BasePermit
from gate.client.guard.terms import Terms
from gate.client.store.intents import Report, Store, StoreUnavailable
from gate.client.transport.exchange import exchange
from gate.client.transport.flow import Do, Flow
from gate.errors import GateError

log = logging.getLogger("gate.client")


def leave(terms: Terms, permit: BasePermit, error: BaseException | None) -> Flow[None]:
    """Everything after the body: stores its end with the receipt for delivery.

    Raises:
        StoreUnavailable: The body succeeded, but the guard could neither store its end nor report it to the service.
            With a session also `START_LOST`: it was rolled back in the body, so you must not commit it.
    """
    report, store = permit.execution_report(error), terms.store
    finish = partial(store.finish, permit.intent, report)
    try:
        try:
            kept = yield from Do(finish)
        except StoreUnavailable:
            raise
        except BaseException:
            # A signal, such as Ctrl-C, whose handler raised: the end is kept first. Where it is kept already, this
            # changes nothing.
            yield from Do(finish)
            raise
        if not kept and (yield from _follows_session(store)):
            raise StoreUnavailable(
                "START_LOST",
                "The session was rolled back inside the block, and the start of the block with it. Do not"
                " commit what was written since: roll back, and enter the guard again.",
            )
        if not kept:
            # Somebody settled it while it was running; its result is reported nevertheless.
            log.error(
                "%s (intent %s) ended after somebody had settled it, so the action may be done twice. Its result"
                " is reported too; compare it with `gate client show %s`.",
                permit.decision_id,
                permit.intent_id,
                permit.intent_id,
            )
            yield from Do(partial(store.tell, _besides(report)))
    except StoreUnavailable as failure:
        if (yield from _follows_session(store)):
            # The service learns what was committed, and nothing else.
            if error is None:
                raise
            return
        # The store says no more than that the body was started, so that a retry stays refused. How it ended, the
        # service learns now or from nobody: this process alone knows it.
        try:
            yield from exchange(call_of(_besides(report)), seconds=terms.seconds, tries=terms.tries)
        except GateError as missed:
            failure.add_note(f"The service could not be reached either: {missed}")
            log.critical("The result of %s could not be stored anywhere: %s", permit.decision_id, failure.code)
            # The body's own error, where there is one, is not hidden behind this one.
            if error is None:
                raise failure from missed
        else:
            log.error(
                "The result of %s was reported to the service but not stored locally: %s",
                permit.decision_id,
                failure.code,
            )


def _follows_session(store: Store) -> Flow[bool]:
    return (yield from Do(lambda: store.follows_session))


def _besides(report: Report) -> Report:
    """The same report under its own key, because somebody else has reported the attempt, or may still do so."""
    return replace(report, idempotency_key=f"{report.idempotency_key}-{secrets.token_hex(8)}")

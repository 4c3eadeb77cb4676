"""The attempts at an intent: each asks the gate once, and is kept before it does."""

from __future__ import annotations

import secrets
from functools import partial

from gate.client.guard.checking import question
from gate.client.guard.proposal import Proposal
from gate.client.store.intents import Intent, State, Store
from gate.client.transport.flow import Do, Flow
from gate.clock import utc_now
from gate.ids import timestamp


class Attempts:
    """The attempts at an intent during one entering of a guard."""

    def __init__(self, proposal: Proposal, store: Store) -> None:
        """Takes the action, and where its intent is kept."""
        self._proposal = proposal
        self._store = store
        self._made: set[int] = set()

    def current(self) -> Flow[Intent | None]:
        """The intent's latest attempt, made where there is none; None where another process was quicker."""
        found = yield from Do(partial(self._store.find, self._proposal.intent_id))
        return found if found is not None else (yield from self._make(1, 1, instead_of=None))

    def supersede(self, intent: Intent, *, undecided: bool = False) -> Flow[None]:
        """Makes the next attempt; under the same question where no decision of this one is known."""
        asked = question(intent)
        yield from self._make(intent.attempt + 1, asked if undecided else asked + 1, instead_of=intent)

    def made(self, intent: Intent) -> bool:
        """Whether this entering made an attempt, so that it cannot have been asked before."""
        return intent.attempt in self._made

    def _make(self, number: int, asked: int, *, instead_of: Intent | None) -> Flow[Intent | None]:
        def hold() -> Intent | None:
            attempt = Intent(
                intent_id=self._proposal.intent_id,
                attempt=number,
                state=State.HELD,
                asked=self._proposal.request(
                    attempt=number, question=asked, store=self._store.identity, nonce=secrets.token_hex(8)
                ),
                asked_hash=self._proposal.body_hash,
                asked_at=timestamp(utc_now()),
            )
            return attempt if self._store.hold(attempt, instead_of=instead_of) else None

        # On disk before it is sent: after a crash in between, the same bytes go out under the same key, and the
        # service answers with the decision that it made then, if it made one.
        attempt = yield from Do(hold)
        if attempt is not None:
            self._made.add(number)
        return attempt

"""The attempts at an intent. Each one asks the gate once, and is stored before it does."""

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
        """Takes the action, and the store of its intent."""
        self._proposal = proposal
        self._store = store
        self._made: set[int] = set()

    def current(self) -> Flow[Intent | None]:
        """The latest attempt at the intent. Creates the first one; None if another process was faster."""
        found = yield from Do(partial(self._store.find, self._proposal.intent_id))
        return found if found is not None else (yield from self._make(1, 1, instead_of=None))

    def supersede(self, intent: Intent, *, undecided: bool = False) -> Flow[None]:
        """Creates the next attempt. It keeps the number of the question if this attempt has no known decision."""
        asked = question(intent)
        yield from self._make(intent.attempt + 1, asked if undecided else asked + 1, instead_of=intent)

    def made(self, intent: Intent) -> bool:
        """Whether this entering created an attempt, so that nobody has sent it before."""
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

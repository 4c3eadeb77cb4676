"""A worker on a durable queue: deliveries that come at least once, refunds that are paid at most once.

A message that is not acknowledged in time is delivered again: after a crash, after a pause, and sometimes to a second
worker while the first still works. The message's id is the intent, so that all its deliveries mean one refund.

    acknowledged   the refund is paid, now or by an earlier delivery; or the gate says no, which is an answer as well
    left           there is no verdict, the payment side or the worker failed, or the end of an earlier delivery is not
                   known yet
    parked         a person has to decide: review, a message that nobody can read, one that was delivered too often,
                   deliveries that got no verdict not counted

A delivery that meets one that was begun asks the payment side whether the money moved. It says that nothing was done
only once an earlier delivery can no longer be at work.
"""

from __future__ import annotations

import json
import logging
import math
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol

from gate.client import (
    AlreadyStarted,
    Blocked,
    Client,
    GateUnavailable,
    HeldForReview,
    MaterialRefused,
    Recovery,
    RequestRefused,
    StoreUnavailable,
    Target,
)

POLICY: Final = "refund_policy@2026-09-01"
MOST_DELIVERIES: Final = 20
IDLE: Final = 0.5

log = logging.getLogger("refunds")


class PaymentFailed(Exception):
    """The payment side did not say that it paid."""


class Payments(Protocol):
    """The payment side."""

    def refund(self, payment_id: str, amount: float, currency: str, *, reference: str, note: str) -> str:
        """Pays money back; its own id of the refund. A second one under one reference is refused, and so is what it
        cannot pay: PaymentFailed.
        """

    def find(self, reference: str) -> str | None:
        """The id of the refund that was paid under a reference, if there is one. Raises PaymentFailed."""


@dataclass(frozen=True, slots=True)
class Message:
    """A delivery.

    Attributes:
        message_id: The message's, the same for every delivery.
        body: What was sent.
        deliveries: How often it was delivered, this time included.
        undecided: After how many of these it was left because there was no verdict.
    """

    message_id: str
    body: str
    deliveries: int
    undecided: int


class Queue:
    """Messages in a table. One that is taken comes back after `visibility` seconds, unless it is acknowledged.

    For one thread; each worker opens its own.
    """

    def __init__(self, path: Path, visibility: float = 60.0) -> None:
        """Opens the file, and makes the table where there is none."""
        self._visibility = visibility
        self._db = sqlite3.connect(path, isolation_level=None, timeout=5)
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS messages (message_id TEXT PRIMARY KEY, body TEXT NOT NULL,"
            " visible_at REAL NOT NULL, deliveries INTEGER NOT NULL DEFAULT 0,"
            " undecided INTEGER NOT NULL DEFAULT 0, parked TEXT)"
        )

    def send(self, message_id: str, body: Mapping[str, Any]) -> None:
        """Adds a message; one of that id that is there already stays as it is."""
        self._db.execute(
            "INSERT INTO messages (message_id, body, visible_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (message_id, json.dumps(body), time.time()),
        )

    def take(self) -> Message | None:
        """The next message, hidden from others for a while; None where there is none."""
        taken = self._db.execute(
            "UPDATE messages SET visible_at = :now + :visibility, deliveries = deliveries + 1 WHERE message_id ="
            " (SELECT message_id FROM messages WHERE parked IS NULL AND visible_at <= :now ORDER BY visible_at LIMIT 1)"
            " RETURNING message_id, body, deliveries, undecided",
            {"now": time.time(), "visibility": self._visibility},
        ).fetchall()
        return Message(*taken[0]) if taken else None

    def acknowledge(self, message: Message) -> None:
        """Removes a message: what it asks for is settled."""
        self._db.execute("DELETE FROM messages WHERE message_id = ?", (message.message_id,))

    def leave(self, message: Message, seconds: float, *, decided: bool) -> None:
        """Lets a message be delivered again, after so many seconds."""
        self._db.execute(
            "UPDATE messages SET visible_at = ?, undecided = undecided + ? WHERE message_id = ?",
            (time.time() + seconds, not decided, message.message_id),
        )

    def park(self, message: Message, why: str) -> None:
        """Sets a message aside for a person; it is delivered no more."""
        self._db.execute("UPDATE messages SET parked = ? WHERE message_id = ?", (why, message.message_id))

    def parked(self) -> Mapping[str, str]:
        """The messages that wait for a person, and why."""
        return dict(self._db.execute("SELECT message_id, parked FROM messages WHERE parked IS NOT NULL"))


@dataclass(frozen=True, slots=True)
class Refund:
    """What a message asks for.

    Attributes:
        payment_id: The payment that is paid back.
        amount: How much of it.
        currency: In which currency.
        facts: The facts that the policy decides over.
    """

    payment_id: str
    amount: float
    currency: str
    facts: Mapping[str, Any]


class Worker:
    """Pays the refunds that a queue asks for."""

    def __init__(
        self,
        queue: Queue,
        client: Client,
        payments: Payments,
        *,
        longest: timedelta = timedelta(minutes=15),
        pause: Callable[[Message], float] = lambda message: min(2.0 ** min(message.deliveries, 9), 300.0),
    ) -> None:
        """Takes the queue, the gate and the payment side.

        Args:
            queue: The queue.
            client: A client whose store all workers share.
            payments: The payment side.
            longest: How long a delivery may be at work: longer than every time-out in it together.
            pause: How long a message that is left waits, in seconds.
        """
        self._queue = queue
        self._client = client
        self._payments = payments
        self._longest = longest
        self._pause = pause

    def run(self, stop: threading.Event) -> None:
        """Works until it is told to stop; the message at hand is finished."""
        while not stop.is_set():
            if not self.work():
                stop.wait(IDLE)

    def work(self) -> bool:
        """Works on one message. False where there is none."""
        message = self._queue.take()
        if message is None:
            return False
        if message.deliveries - message.undecided > MOST_DELIVERIES:
            self._queue.park(message, f"delivered {MOST_DELIVERIES} times, and never settled")
            return True
        try:
            refund = read(message.body)
        except (ValueError, KeyError, TypeError) as error:
            self._queue.park(message, f"not a refund: {error!r}")
            return True
        try:
            self._pay(message.message_id, refund)
        except Blocked as error:
            log.info("%s is refused: %s", message.message_id, error)
            self._queue.acknowledge(message)
        except HeldForReview as error:
            self._queue.park(message, f"review: decision {error.decision_id}")
        except AlreadyStarted as error:
            self._meet(message, error)
        except GateUnavailable as error:
            # Some of it, such as an unknown key, only heals once a person has read the log.
            self._leave(message, str(error), error.retry_after, decided=False)
        except (MaterialRefused, RequestRefused) as error:
            self._queue.park(message, f"not a refund: {error}")
        except (PaymentFailed, StoreUnavailable) as error:
            # Begun, and not known to have ended well: the next delivery finds out.
            self._leave(message, str(error))
        except Exception as error:
            # A fault of this program, perhaps after it began: the same, and the other messages go on.
            log.exception("%s met a fault of the worker.", message.message_id)
            self._leave(message, repr(error))
        else:
            self._queue.acknowledge(message)
        return True

    def _pay(self, message_id: str, refund: Refund) -> None:
        with self._client.guard(
            POLICY,
            refund.facts,
            action="issue_refund",
            target=Target("payments", refund.payment_id, "refund.create"),
            intent=message_id,
            context={"workflow": "refund_queue", "amount": refund.amount, "currency": refund.currency},
            recover=self._recover,
        ) as permit:
            paid = self._payments.refund(
                refund.payment_id, refund.amount, refund.currency, reference=permit.intent_id, note=permit.decision_id
            )
            permit.describe(external_ref=paid)

    def _recover(self, error: AlreadyStarted) -> Recovery:
        """What became of a refund that an earlier delivery began."""
        if self._payments.find(error.intent_id) is not None:
            return Recovery.EXECUTED
        if error.intent is None or error.intent.started_at is None:
            # Another store began it, and this one cannot tell when.
            return Recovery.HOLD
        begun = datetime.fromisoformat(error.intent.started_at)
        return Recovery.NOT_EXECUTED if datetime.now(UTC) - begun > self._longest else Recovery.HOLD

    def _meet(self, message: Message, error: AlreadyStarted) -> None:
        if (error.execution or {}).get("execution_status") == "executed":
            self._queue.acknowledge(message)
        else:
            self._leave(message, str(error))

    def _leave(self, message: Message, why: str, seconds: float | None = None, *, decided: bool = True) -> None:
        log.warning("%s is left: %s", message.message_id, why)
        self._queue.leave(message, self._pause(message) if seconds is None else seconds, decided=decided)


def read(body: str) -> Refund:
    """The refund that a message asks for. Raises ValueError, KeyError or TypeError where it asks for none."""
    said = json.loads(body)
    facts = dict(said["facts"])
    payment_id, amount, currency = said["payment_id"], facts["amount"], facts["currency"]
    if not all(isinstance(text, str) and text.strip() for text in (payment_id, currency)):
        raise ValueError("payment_id and currency must be texts, and not empty.")
    # To Python true is a number as well.
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 < amount < math.inf:
        raise ValueError("amount must be a finite number above zero.")
    return Refund(payment_id, amount, currency, facts)

"""A worker on a durable queue: at-least-once deliveries, at-most-once refunds.

The queue repeats a message that is not acknowledged in time: after a crash, after a pause, and sometimes to a second
worker while the first is still working. The message's id is the intent, so all its deliveries mean one refund.

    acknowledged   the refund was paid, now or by an earlier delivery, or the gate says no
    left           there is no verdict, the payment service or the worker failed, or the end of an earlier delivery is
                   not known yet
    parked         a person has to decide: a review, an unreadable message, or a message with too many deliveries;
                   deliveries without a verdict do not count

If an earlier delivery began the refund, the worker asks the payment service whether the money moved. It reports that
nothing was done only when the earlier delivery can no longer be running.
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
    """The payment service did not confirm the payment."""


class Payments(Protocol):
    """The payment service."""

    def refund(self, payment_id: str, amount: float, currency: str, *, reference: str, note: str) -> str:
        """Pays a refund and returns its id. Raises PaymentFailed if it cannot pay, or if the reference was used."""

    def find(self, reference: str) -> str | None:
        """Returns the id of the refund with a reference, or None. Raises PaymentFailed."""


@dataclass(frozen=True, slots=True)
class Message:
    """A delivery of a message.

    Attributes:
        message_id: The message's id, the same for every delivery.
        body: The message's text.
        deliveries: The number of deliveries, including this one.
        undecided: The number of deliveries that got no verdict.
    """

    message_id: str
    body: str
    deliveries: int
    undecided: int


class Queue:
    """Messages in a table. A taken message returns after `visibility` seconds unless it is acknowledged.

    Use it in one thread; each worker opens its own.
    """

    def __init__(self, path: Path, visibility: float = 60.0) -> None:
        """Opens the file and creates the table if it does not exist."""
        self._visibility = visibility
        self._db = sqlite3.connect(path, isolation_level=None, timeout=5)
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS messages (message_id TEXT PRIMARY KEY, body TEXT NOT NULL,"
            " visible_at REAL NOT NULL, deliveries INTEGER NOT NULL DEFAULT 0,"
            " undecided INTEGER NOT NULL DEFAULT 0, parked TEXT)"
        )

    def send(self, message_id: str, body: Mapping[str, Any]) -> None:
        """Adds a message, unless there is one with that id."""
        self._db.execute(
            "INSERT INTO messages (message_id, body, visible_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (message_id, json.dumps(body), time.time()),
        )

    def take(self) -> Message | None:
        """Takes the next message and hides it from other workers; None if there is none."""
        taken = self._db.execute(
            "UPDATE messages SET visible_at = :now + :visibility, deliveries = deliveries + 1 WHERE message_id ="
            " (SELECT message_id FROM messages WHERE parked IS NULL AND visible_at <= :now ORDER BY visible_at LIMIT 1)"
            " RETURNING message_id, body, deliveries, undecided",
            {"now": time.time(), "visibility": self._visibility},
        ).fetchall()
        return Message(*taken[0]) if taken else None

    def acknowledge(self, message: Message) -> None:
        """Removes a message whose request is settled."""
        self._db.execute("DELETE FROM messages WHERE message_id = ?", (message.message_id,))

    def leave(self, message: Message, seconds: float, *, decided: bool) -> None:
        """Makes the queue deliver a message again after a number of seconds."""
        self._db.execute(
            "UPDATE messages SET visible_at = ?, undecided = undecided + ? WHERE message_id = ?",
            (time.time() + seconds, not decided, message.message_id),
        )

    def park(self, message: Message, why: str) -> None:
        """Sets a message aside for a person; the queue no longer delivers it."""
        self._db.execute("UPDATE messages SET parked = ? WHERE message_id = ?", (why, message.message_id))

    def parked(self) -> Mapping[str, str]:
        """The messages that wait for a person, with the reasons."""
        return dict(self._db.execute("SELECT message_id, parked FROM messages WHERE parked IS NOT NULL"))


@dataclass(frozen=True, slots=True)
class Refund:
    """The refund that a message requests.

    Attributes:
        payment_id: The payment to refund.
        amount: The amount to refund.
        currency: The currency of the amount.
        facts: The facts that the policy decides on.
    """

    payment_id: str
    amount: float
    currency: str
    facts: Mapping[str, Any]


class Worker:
    """Pays the refunds from a queue."""

    def __init__(
        self,
        queue: Queue,
        client: Client,
        payments: Payments,
        *,
        longest: timedelta = timedelta(minutes=15),
        pause: Callable[[Message], float] = lambda message: min(2.0 ** min(message.deliveries, 9), 300.0),
    ) -> None:
        """Creates a worker.

        Args:
            queue: The queue.
            client: A client whose store all workers share.
            payments: The payment service.
            longest: The longest time that a delivery can run: more than all its timeouts together.
            pause: How long a message waits before its next delivery, in seconds.
        """
        self._queue = queue
        self._client = client
        self._payments = payments
        self._longest = longest
        self._pause = pause

    def run(self, stop: threading.Event) -> None:
        """Works until `stop` is set, and finishes the current message."""
        while not stop.is_set():
            if not self.work():
                stop.wait(IDLE)

    def work(self) -> bool:
        """Works on one message. Returns False if there is none."""
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
            # A person has to fix some causes, such as an unknown key.
            self._leave(message, str(error), error.retry_after, decided=False)
        except (MaterialRefused, RequestRefused) as error:
            self._queue.park(message, f"not a refund: {error}")
        except (PaymentFailed, StoreUnavailable) as error:
            # It began, and may have failed: the next delivery finds out.
            self._leave(message, str(error))
        except Exception as error:
            # A bug in this program, perhaps after the refund began: the next delivery finds out.
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
        """Finds out how a refund ended that an earlier delivery began."""
        if self._payments.find(error.intent_id) is not None:
            return Recovery.EXECUTED
        if error.intent is None or error.intent.started_at is None:
            # Another store began it, so the time is unknown.
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
    """Returns the refund that a message requests. Raises ValueError, KeyError or TypeError if it is invalid."""
    said = json.loads(body)
    facts = dict(said["facts"])
    payment_id, amount, currency = said["payment_id"], facts["amount"], facts["currency"]
    if not all(isinstance(text, str) and text.strip() for text in (payment_id, currency)):
        raise ValueError("payment_id and currency must be texts, and not empty.")
    # In Python, True is also an int.
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 < amount < math.inf:
        raise ValueError("amount must be a finite number above zero.")
    return Refund(payment_id, amount, currency, facts)

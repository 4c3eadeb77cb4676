"""A service function whose effects are rows: the refund, that it was begun, and its receipt are committed together.

The shop keeps its customers' balances itself, so that a refund is two writes in its own database. The client's store is
a `SqlAlchemyStore` on it, and given the session, the guard writes what it knows of the body in the same transaction:

    with sessions.begin() as session:
        refund = refund_to_balance(session, client, order_id="order-77", refund_id="r-1")

    commit     the refund is there and its receipt waits to be delivered; a second call raises AlreadyStarted
    rollback   neither is there; the permission is, and a second call runs

This is right because the body does nothing else. One that pays, sends or calls something outside of the database takes
the guard without a session: a rollback would not undo what was sent.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import ForeignKey
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from gate.client import Client, Target

POLICY: Final = "refund_policy@2026-09-01"


class Base(DeclarativeBase):
    """The shop's tables. The guard's own come from `store.create_tables()`, or from its metadata in a migration."""


class Customer(Base):
    """Who has a balance."""

    __tablename__ = "customers"

    customer_id: Mapped[str] = mapped_column(primary_key=True)
    balance_cents: Mapped[int]
    refunds_12_months: Mapped[int] = mapped_column(default=0)
    fraud_flag: Mapped[bool] = mapped_column(default=False)


class Order(Base):
    """What was bought, and paid from the balance."""

    __tablename__ = "orders"

    order_id: Mapped[str] = mapped_column(primary_key=True)
    customer_id: Mapped[str] = mapped_column(ForeignKey("customers.customer_id"))
    paid_cents: Mapped[int]
    bought_at: Mapped[datetime]
    item_returned: Mapped[bool] = mapped_column(default=False)


class Refund(Base):
    """What was paid back, under which decision."""

    __tablename__ = "refunds"

    refund_id: Mapped[str] = mapped_column(primary_key=True)
    order_id: Mapped[str] = mapped_column(ForeignKey("orders.order_id"))
    cents: Mapped[int]
    decision_id: Mapped[str]


def refund_to_balance(session: Session, client: Client, *, order_id: str, refund_id: str) -> Refund:
    """Pays an order back to its customer's balance. The caller commits.

    Raises:
        NotPermitted: Blocked, HeldForReview, GateUnavailable, or AlreadyStarted; nothing was written.
    """
    order = session.get_one(Order, order_id)
    customer = session.get_one(Customer, order.customer_id)
    # Nothing is written before the guard is entered: on SQLite the guard's store would wait for it.
    with client.guard(
        POLICY,
        _facts(order, customer),
        action="issue_refund",
        target=Target("balances", customer.customer_id, "balance.credit"),
        intent=refund_id,
        context={"workflow": "balance_refund", "source_record_id": order_id, "subject": customer.customer_id},
        expected_action="issue_refund",
        session=session,
    ) as permit:
        refund = Refund(refund_id=refund_id, order_id=order_id, cents=order.paid_cents, decision_id=permit.decision_id)
        session.add(refund)
        customer.balance_cents += order.paid_cents
        # Whatever the database objects to, it says now, while the body can still fail.
        session.flush()
        permit.describe(external_ref=refund_id)
    return refund


def _facts(order: Order, customer: Customer) -> dict[str, Any]:
    return {
        "amount": order.paid_cents / 100,
        "currency": "EUR",
        "share_of_payment_percent": 100,
        "days_since_purchase": (datetime.now(UTC) - order.bought_at.replace(tzinfo=UTC)).days,
        "reason": "changed_mind",
        "final_sale": False,
        "fraud_flag": customer.fraud_flag,
        "chargeback_open": False,
        "prior_refunds_12_months": customer.refunds_12_months,
        "to_original_payment_method": True,
        "item_returned": order.item_returned,
    }

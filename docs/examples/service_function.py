"""A service function whose effects are rows: the refund, its start, and its receipt are committed together.

The shop keeps its customers' balances, so a refund is two writes in its own database. The client's store is a
`SqlAlchemyStore` on that database. With `session=`, the guard writes the start and the receipt in the same transaction:

    with sessions.begin() as session:
        refund = refund_to_balance(session, client, order_id="order-77", refund_id="r-1")

    commit     the refund is stored, and its receipt waits for delivery; a second call raises AlreadyStarted
    rollback   neither is stored; the permission remains, and a second call runs

A different refund_id means a different refund. The function counts earlier refunds in the same transaction, so that the
policy refuses to refund an order twice.

This is correct because the body does nothing else. If a body pays, sends or calls something outside the database, use
the guard without a session: a rollback would not undo that.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import ForeignKey, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from gate.client import Client, Target

POLICY: Final = "refund_policy@2026-09-01"


class FactsChanged(Exception):
    """The facts changed after the decision. Roll back and call again, so that the gate decides on the current facts."""


class Base(DeclarativeBase):
    """The shop's tables. `store.create_tables()` or a schema migration creates the guard's tables."""


class Customer(Base):
    """A customer with a balance."""

    __tablename__ = "customers"

    customer_id: Mapped[str] = mapped_column(primary_key=True)
    balance_cents: Mapped[int]
    fraud_flag: Mapped[bool] = mapped_column(default=False)


class Order(Base):
    """An order that was paid from the balance. Times are UTC."""

    __tablename__ = "orders"

    order_id: Mapped[str] = mapped_column(primary_key=True)
    customer_id: Mapped[str] = mapped_column(ForeignKey("customers.customer_id"))
    paid_cents: Mapped[int]
    bought_at: Mapped[datetime]
    item_returned: Mapped[bool] = mapped_column(default=False)


class Refund(Base):
    """A paid refund with its decision."""

    __tablename__ = "refunds"

    refund_id: Mapped[str] = mapped_column(primary_key=True)
    order_id: Mapped[str] = mapped_column(ForeignKey("orders.order_id"))
    cents: Mapped[int]
    paid_at: Mapped[datetime]
    decision_id: Mapped[str]


def refund_to_balance(session: Session, client: Client, *, order_id: str, refund_id: str) -> Refund:
    """Refunds an order to its customer's balance. The caller commits.

    Raises:
        NotPermitted: Blocked, HeldForReview, GateUnavailable, or AlreadyStarted; nothing was written.
        FactsChanged: The facts changed after the decision; the caller rolls back.
    """
    order = session.get_one(Order, order_id)
    customer = session.get_one(Customer, order.customer_id)
    facts = _facts(session, order, customer)
    # Write nothing before the guard is entered: on SQLite, the guard's store would wait for this session.
    with client.guard(
        POLICY,
        facts,
        action="issue_refund",
        target=Target("balances", customer.customer_id, "balance.credit"),
        intent=refund_id,
        context={"workflow": "balance_refund", "source_record_id": order_id, "subject": customer.customer_id},
        session=session,
    ) as permit:
        # Lock the customer until the commit, and check that nothing has changed since the facts were read.
        session.refresh(customer, with_for_update=True)
        if _facts(session, order, customer) != facts:
            raise FactsChanged(f"What is known of {order_id} changed while the gate decided; call again.")
        cents = order.paid_cents
        refund = Refund(
            refund_id=refund_id, order_id=order_id, cents=cents, paid_at=_now(), decision_id=permit.decision_id
        )
        session.add(refund)
        customer.balance_cents += cents
        # Database errors should occur here, while the body can still fail.
        session.flush()
        permit.describe(external_ref=refund_id)
    return refund


def _facts(session: Session, order: Order, customer: Customer) -> dict[str, Any]:
    paid_back = select(func.sum(Refund.cents)).where(Refund.order_id == order.order_id)
    in_all = (session.scalar(paid_back) or 0) + order.paid_cents
    this_year = (
        select(func.count(Refund.refund_id))
        .join(Order)
        .where(Order.customer_id == customer.customer_id, Refund.paid_at > _now() - timedelta(days=365))
    )
    return {
        "amount": order.paid_cents / 100,
        "currency": "EUR",
        # An order that cost nothing has no share; the policy refuses its amount.
        "share_of_payment_percent": 100 * in_all / (order.paid_cents or 1),
        "days_since_purchase": (_now() - order.bought_at).days,
        "reason": "changed_mind",
        "final_sale": False,
        "fraud_flag": customer.fraud_flag,
        "chargeback_open": False,
        "prior_refunds_12_months": session.scalar(this_year) or 0,
        "to_original_payment_method": True,
        "item_returned": order.item_returned,
    }


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)

"""The client of the decision gate, for threads.

client = Client("https://gate.example", key_file="gate.key", registry="receipt-keys.json", store="intents.db")
record = client.decide(request)
client.verify(record, request=request).verified

with client.guard("refund_policy@2026-09-01", facts, action="issue_refund", target=("shop", "order-77")) as permit:
    payments.refund("order-77")
"""

from __future__ import annotations

import inspect
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final, Generic, ParamSpec, TypeAlias, TypeVar, Unpack

from gate.client import connection
from gate.client.api.endpoints import Endpoints
from gate.client.errors import AlreadyStarted
from gate.client.guard.blocks import Guard, PerFunction, guarded
from gate.client.guard.delivery import LAST_SECONDS, Courier, Delivery, deliver
from gate.client.guard.permit import Permit
from gate.client.guard.proposal import Proposal, Target, propose
from gate.client.guard.recovery import begun
from gate.client.guard.terms import REVIEW_SECONDS, OnReview, Terms
from gate.client.store.intents import SharesTransactions, Store
from gate.client.transport.calls import Answer, Call
from gate.client.transport.engine import Credentials, Engine
from gate.client.transport.exchange import exchange
from gate.client.transport.flow import Flow
from gate.errors import OperatorError

# Loaded when first used, since not every caller needs it.
if TYPE_CHECKING:
    import httpx
    from sqlalchemy.orm import Session, scoped_session

    from gate.client.guard.blocks import Asked
    from gate.verify import PacketVerification, Trust, Verification

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
G = TypeVar("G")
H = TypeVar("H")

TIMEOUT: Final = 10.0
"""How long a call may take with all its tries, in seconds, where nothing else is said."""

TRIES: Final = 3
"""How often a call is sent at most, where nothing else is said."""

_LONGEST_TIMEOUT: Final = 3600.0

Registry: TypeAlias = "Trust | Mapping[str, object] | str | os.PathLike[str]"


class BaseClient(ABC, Generic[G, H]):
    """What both clients do alike; `G` is their guard, and `H` the kind of HTTP transport that they send with."""

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        key_file: str | os.PathLike[str] | None = None,
        registry: Registry | None = None,
        scope_hash: str | None = None,
        store: Store | str | os.PathLike[str] | None = None,
        timeout: float = TIMEOUT,
        tries: int = TRIES,
        metrics_token_file: str | os.PathLike[str] | None = None,
        transport: H | None = None,
        delivery_transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Makes a client; nothing is sent yet. What is not given comes from the environment: see
        `gate.client.connection`.

        Args:
            url: The service's address.
            key: The API key, where it is not in a file.
            key_file: A file with the API key.
            registry: The receipt keys that records are held to: the path of a saved registry, its document, or a Trust.
            scope_hash: The scope that guarded actions must be decided in: `rulebook_registry.scope_hash` of its
                records. A key of the service names it; to be given where something in between puts the key in.
            store: The guard's store, or the path of its file.
            timeout: How long a call may take with all its tries, in seconds.
            tries: How often a call is sent at most, where it may be sent again at all.
            metrics_token_file: A file with the token that opens the metrics.
            transport: An httpx transport of the caller's own, for proxies and the like: a `BaseTransport` for `Client`,
                an `AsyncBaseTransport` for `AsyncClient`.
            delivery_transport: The same for the thread that delivers reports; a `Client` without one uses `transport`.

        Raises:
            OperatorError: The address, a key or a number is unusable.
            MaterialRefused: The registry's document is unusable.
        """
        if not isinstance(tries, int) or tries < 1:
            raise OperatorError(
                "TIMEOUT_INVALID", "tries, the number of times a call is sent, must be an integer of at least 1."
            )
        if registry is None:
            registry = os.environ.get(connection.REGISTRY) or None
        if store is None:
            store = os.environ.get(connection.INTENTS) or None
        self._url = connection.service_url(url)
        own_key = connection.api_key(key, key_file)
        self._credentials = Credentials(own_key, connection.metrics_token(metrics_token_file))
        self._scope = connection.scope(scope_hash, own_key)
        self._trust = connection.trust(registry)
        self._is_pinned = connection.is_pinned(registry)
        self._store = _store_at(store) if isinstance(store, str | os.PathLike) else store
        self._timeout = _seconds(timeout)
        self._tries = tries
        self._open(transport, delivery_transport)

    @abstractmethod
    def _open(self, transport: H | None, delivery_transport: httpx.BaseTransport | None) -> None:
        """Makes what sends and what delivers."""

    def __repr__(self) -> str:
        """The client by its service; never a key."""
        return f"<{type(self).__name__} of {self._url}>"

    def verify(self, record: object, *, request: object = None) -> Verification:
        """Verifies a full record offline, against the pinned keys.

        Args:
            record: The record, as `decide` or `get_decision` gave it.
            request: The Decision Request, where it is at hand: its hashes are checked as well.

        Returns:
            What was found; `verified` is True only where nothing was changed and a pinned key signed it.

        Raises:
            OperatorError: FILE_UNREADABLE: the file of pinned keys.
            MaterialRefused: The file of pinned keys holds none.
        """
        from gate.verify import verify_record

        return verify_record(record, self._trust(), request_body=request)

    def verify_packet(
        self, packet: object, *, request: object = None, checkpoint: Mapping[str, object] | None = None
    ) -> PacketVerification:
        """Verifies a packet offline, against the pinned keys and, where one was kept, a checkpoint of its chain.

        Raises:
            OperatorError: FILE_UNREADABLE: the file of pinned keys.
            MaterialRefused: The file of pinned keys holds none.
        """
        from gate.verify import verify_packet

        return verify_packet(packet, self._trust(), request_body=request, checkpoint=checkpoint)

    def guard(
        self,
        rulebook: str | Mapping[str, object],
        facts: Mapping[str, object] | None = None,
        *,
        adapter: Mapping[str, object] | None = None,
        action: str,
        target: Target | tuple[str, ...],
        intent: str | None = None,
        context: Mapping[str, object] | None = None,
        outcome_action: str | Collection[str] | None = None,
        max_age: float | None = None,
        on_review: OnReview = "raise",
        review_seconds: float | None = None,
        recover: Callable[[AlreadyStarted], object] | None = None,
        timeout: float | None = None,
        session: Session | scoped_session[Session] | None = None,
    ) -> G:
        """A context manager whose body runs only on a verified yes about this action, or on its owner's verified grant
        where the verdict is review, and once for one intent.

        Args:
            rulebook: `rulebook_id@version`, a reference {rulebook_id, version} or {rulebook_id, hash}, or a rulebook.
            facts: The facts that it decides over; JSON values. Either these, or `adapter`.
            adapter: The trusted adapter that makes the facts, and what it is given: {adapter_id, version,
                manifest_hash, input}. `list_trusted_adapters` shows those that there are.
            action: The action that you are about to take, such as `issue_refund`; part of the intent and of the
                record's action_binding.
            target: What it changes: (system, object id), or `Target` with the mutation.
            intent: What tells this doing of the action from another on the same target: the order of a refund, the id
                of a message. Where it is left out, the action happens once for its target, ever. Facts, what makes
                them and the rulebook's version are no part of it, so that a retry is a retry even when they have
                changed.
            context: Further members of the request's context: workflow, source_record_id, actor, subject, amount,
                currency and what else the rulebook's owner wants to see.
            outcome_action: The action, or actions, of a yes that allow the body; default: `action`. A grant allows
                `action` itself, whatever the outcome of the review is called.
            max_age: How old the verdict may be when the body begins, in seconds; a grant, since it was made. Default:
                300 for a verdict, and a grant until it ends.
            on_review: Where the action is held for review: `raise` HeldForReview, unless its owner has answered by
                now, or `wait` for the answer.
            review_seconds: With `wait`, how long to wait at most, in seconds, before one last look; then HeldForReview
                is raised. Default: 300.
            recover: Called with AlreadyStarted where the action was begun before; returns a `Recovery`.
            timeout: How long the decision may take with all its tries, in seconds.
            session: A SQLAlchemy session, where the client's store is a `SqlAlchemyStore` on its database: the body's
                start and end are then written in the session's transaction, together with what the body does. See
                `SqlAlchemyStore.within` for when that is right.

        Raises:
            RequestRefused: SVC_API_REQUEST_INVALID: an argument is unusable.
            MaterialRefused: SVC_API_JSON_INVALID: a fact, or what the adapter is given, is no JSON value.
            OperatorError: There is no store, no pinned key, or no store that the session reaches.
            StoreUnavailable: With a session: the store cannot be used.

        On entering it raises Blocked, HeldForReview, GateUnavailable (Undecidable where the service refuses the request
        as it is) or AlreadyStarted where the body must not run.
        """
        proposal = propose(
            rulebook,
            facts,
            adapter=adapter,
            action=action,
            target=target,
            intent=intent,
            context=context,
            outcome_action=outcome_action,
        )
        return self._guard(
            proposal,
            self._terms(
                max_age=max_age,
                on_review=on_review,
                review_seconds=review_seconds,
                recover=recover,
                timeout=timeout,
                session=session,
            ),
        )

    def resume(
        self,
        intent_id: str,
        *,
        max_age: float | None = None,
        on_review: OnReview = "raise",
        review_seconds: float | None = None,
        timeout: float | None = None,
        session: Session | scoped_session[Session] | None = None,
    ) -> G:
        """A context manager whose body runs once its owner has granted an action that was held for review, in any
        process that has its store. The request with its facts is the one that was held; nothing is asked anew.

        Args:
            intent_id: `intent_id` of the HeldForReview.
            max_age: How long ago the grant may have been made when the body begins, in seconds. Default: until it ends.
            on_review: As for `guard`.
            review_seconds: As for `guard`.
            timeout: As for `guard`, for each look at the review.
            session: As for `guard`.

        Raises:
            OperatorError: There is no store, no pinned key, or no store that the session reaches.
            StoreUnavailable: With a session: the store cannot be used.

        On entering it raises HeldForReview where there is no grant that opens the action, Blocked where its owner
        refused it, GateUnavailable, AlreadyStarted, or OperatorError (INTENT_UNKNOWN, INTENT_NOT_HELD) where no such
        intent is held for review.
        """
        if not isinstance(intent_id, str):
            raise OperatorError("INTENT_UNKNOWN", "intent_id must be a string: the intent_id of a HeldForReview.")
        terms = self._terms(
            max_age=max_age,
            on_review=on_review,
            review_seconds=review_seconds,
            recover=None,
            timeout=timeout,
            session=session,
        )
        return self._guard(intent_id, terms)

    def _terms(
        self,
        *,
        max_age: float | None,
        on_review: str,
        review_seconds: float | None,
        recover: Callable[[AlreadyStarted], object] | None,
        timeout: float | None,
        session: Session | scoped_session[Session] | None,
    ) -> Terms:
        kept = self._kept_in()
        if not self._is_pinned:
            raise OperatorError(
                "KEY_REGISTRY_MISSING",
                "The guard needs the public keys that sign records. Save the answer of GET "
                "/api/decision/receipt-keys to a file, and pass its path as registry= or set "
                f"{connection.REGISTRY}.",
            )
        if max_age is not None and not _is_above_zero(max_age):
            raise OperatorError("MAX_AGE_INVALID", "max_age must be a number of seconds above zero.")
        if on_review not in ("raise", "wait"):
            raise OperatorError("ON_REVIEW_INVALID", "on_review must be 'raise' or 'wait'.")
        if review_seconds is not None and on_review != "wait":
            raise OperatorError(
                "ON_REVIEW_INVALID", "review_seconds is how long to wait for the owner; pass on_review='wait' with it."
            )
        if review_seconds is not None and not _is_above_zero(review_seconds):
            raise OperatorError("ON_REVIEW_INVALID", "review_seconds must be a number of seconds above zero.")
        if recover is not None and not self._can_consult(recover):
            raise OperatorError(
                "RECOVER_INVALID",
                "recover must be a function that takes AlreadyStarted; a coroutine function works only "
                "with an AsyncClient.",
            )
        return Terms(
            store=kept if session is None else _within(kept, session),
            trust=self._trust,
            seconds=self._timeout if timeout is None else _seconds(timeout),
            tries=self._tries,
            max_age=max_age,
            recover=recover,
            scope_hash=self._scope,
            waits=on_review == "wait",
            review_seconds=REVIEW_SECONDS if review_seconds is None else review_seconds,
        )

    def _kept_in(self) -> Store:
        if self._store is None:
            raise _storeless("The guard needs a store that outlives the process")
        return self._store

    def _can_consult(self, recover: object) -> bool:
        return callable(recover)

    @abstractmethod
    def _guard(self, wanted: Proposal | str, terms: Terms) -> G:
        """The guarded block of a proposal, or of a held intent by its name."""

    def _courier_of(self, engine: Engine) -> Courier:
        # It keeps no reference to the client, so that it ends with it.
        store, scope, seconds, tries = self._store, self._scope, self._timeout, self._tries

        def delivery(again: bool) -> Flow[Delivery]:
            if store is None:
                raise _storeless("There is no store to deliver reports from")
            return deliver(store, scope, seconds=seconds, tries=tries, again=again)

        courier = Courier(lambda again: engine.run(delivery(again)))
        weakref.finalize(self, courier.abandon).atexit = False
        return courier

    def _exchange(self, call: Call[T], timeout: float | None) -> Flow[Answer[T]]:
        seconds = self._timeout if timeout is None else _seconds(timeout)
        return exchange(call, seconds=seconds, tries=self._tries)


class Client(BaseClient[Guard, "httpx.BaseTransport"], Endpoints):
    """The service for threads; threads may share one client, and a forked process may go on with its parent's.

    Every endpoint is a method named as its operation: `decide`, `report_execution`, `export_packet` and so on.
    """

    def _open(self, transport: httpx.BaseTransport | None, delivery_transport: httpx.BaseTransport | None) -> None:
        self._engine = background = Engine(self._url, self._credentials, transport)
        if delivery_transport is not None:
            background = Engine(self._url, self._credentials, delivery_transport)
        self._courier = self._courier_of(background)

    def send(self, call: Call[T], *, timeout: float | None = None) -> Answer[T]:
        """Sends a call of `gate.client.operations`, for its status and headers as well as its body.

        Raises:
            ApiError: The service did not give what it was asked for.
        """
        return self._engine.run(self._exchange(call, timeout))

    def guarded(
        self,
        rulebook: str | Mapping[str, object],
        *,
        facts: Callable[..., Mapping[str, object]] | None = None,
        adapter: Callable[..., Mapping[str, object]] | None = None,
        action: str,
        target: Target | tuple[str, ...] | Callable[..., Target | tuple[str, ...]],
        **more: Unpack[PerFunction],
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """A decorator: the function's body is guarded as by `guard`, and takes the same arguments.

        `facts` or `adapter`, and `target`, `intent` and `context` where they differ from call to call, are functions of
        the function's own arguments. A function with a parameter `permit` is given the permit by that name.

        Raises:
            RequestRefused: SVC_API_REQUEST_INVALID: both of `facts` and `adapter` are given, or neither.
            TypeError: The function is a coroutine function or a generator, whose body would run outside of the guard.
        """
        said: Asked = {
            "rulebook": rulebook,
            "facts": facts,
            "adapter": adapter,
            "action": action,
            "target": target,
        }
        return guarded(self.guard, said, more)

    def recall(self, intent_id: str) -> Permit:
        """The permit of an action that was begun, at any time and in any process that has its store, to report an
        outcome.

        Args:
            intent_id: `permit.intent_id` of then.

        Raises:
            OperatorError: INTENT_UNKNOWN, or INTENT_NOT_STARTED: it was not begun, or its record is forgotten.
            StoreUnavailable: The store cannot be used.
        """
        return Permit(self._engine, self._courier.wake, self._kept_in(), *begun(self._kept_in(), intent_id), ended=True)

    def flush(self, *, again: bool = False) -> Delivery:
        """Delivers the reports that wait, in order, until none does or the service cannot take them now.

        Args:
            again: Whether to begin with those that were set aside because the service refused them.

        Raises:
            StoreUnavailable: The store cannot be used.
            OperatorError: INTENTS_MISSING.
        """
        return self._courier.deliver(again=again)

    def close(self) -> None:
        """Lets waiting reports be delivered, for at most five seconds, and closes the connections."""
        self._courier.close(LAST_SECONDS)
        self._engine.close()

    def __enter__(self) -> Client:
        """The client."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Closes it."""
        self.close()

    def _can_consult(self, recover: object) -> bool:
        return callable(recover) and not inspect.iscoroutinefunction(recover)

    def _guard(self, wanted: Proposal | str, terms: Terms) -> Guard:
        return Guard(self._engine, self._courier, wanted, terms)


def _is_above_zero(seconds: object) -> bool:
    return not isinstance(seconds, bool) and isinstance(seconds, int | float) and seconds > 0


def _seconds(timeout: float) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= _LONGEST_TIMEOUT:
        raise OperatorError(
            "TIMEOUT_INVALID", f"timeout must be a number of seconds above zero and at most {_LONGEST_TIMEOUT:g}."
        )
    return timeout


def _store_at(path: str | os.PathLike[str]) -> Store:
    from gate.client.store.sqlite import SqliteStore

    return SqliteStore(path)


def _within(store: Store, session: Session | scoped_session[Session]) -> Store:
    if isinstance(store, SharesTransactions):
        return store.within(session)
    raise OperatorError(
        "STORE_SEPARATE",
        "The guard's store is in another database than the session; create the client with a "
        "store in the session's database, or remove session=.",
    )


def _storeless(why: str) -> OperatorError:
    return OperatorError("INTENTS_MISSING", f"{why}; pass store=, or set {connection.INTENTS} to a file path.")

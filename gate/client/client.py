"""The client of the decision gate for threads.

    client = Client("https://gate.example", key_file="gate.key", registry="receipt-keys.json", store="intents.db")
    record = client.decide(request)
    client.verify(record, request=request).verified

    with client.guard("refund_policy@2026-09-01", facts, action="issue_refund", target=("shop", "order-77")) as permit:
        payments.refund("order-77")

`registry` has the keys that verify records, and `store` is the file in which the guard remembers its actions.
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
"""The default time limit of a call with all its retries, in seconds."""

TRIES: Final = 3
"""The default for how often the client sends a call at most."""

_LONGEST_TIMEOUT: Final = 3600.0

Registry: TypeAlias = "Trust | Mapping[str, object] | str | os.PathLike[str]"


class BaseClient(ABC, Generic[G, H]):
    """The methods that both clients share. `G` is the type of their guard, and `H` the type of their HTTP transport."""

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
        """Creates a client without sending anything. Missing arguments come from environment variables.

        An empty variable counts as unset.

        Args:
            url: The address of the service, without user, query, and key. Default: `GATE_URL`.
            key: The API key. Default: `GATE_API_KEY`.
            key_file: Instead of `key`: a file with the API key. The client reads a replaced file again. Default:
                `GATE_API_KEY_FILE`.
            registry: The receipt keys that records must be signed with: the path of a saved key registry, its
                document, or a `Trust`. Default: `GATE_KEY_REGISTRY`.
            scope_hash: The scope that must decide guarded actions, as `rulebook_registry.scope_hash` in its records.
                API keys of the service contain it. Pass it if a proxy adds the API key. Default: `GATE_SCOPE_HASH`.
            store: The guard's store, or the path of its file. Default: `GATE_INTENTS`.
            timeout: The time limit of a call with all its retries, in seconds. Default: 10.
            tries: How often the client sends a call at most, with the same idempotency key. Default: 3.
            metrics_token_file: A file with the token for `get_metrics`, `get_proof_metrics`, and `export_pilots`.
            transport: Your own httpx transport, for example for a proxy or a private certificate: a `BaseTransport`
                for `Client`, an `AsyncBaseTransport` for `AsyncClient`.
            delivery_transport: Your own httpx transport for the thread that delivers reports. The default of a
                `Client` is `transport`. An `AsyncClient` with its own `transport` needs one.

        Raises:
            OperatorError: The address, a key or a number is invalid.
            MaterialRefused: The document of the key registry is invalid.
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
        """The class and the address of the service, without the key."""
        return f"<{type(self).__name__} of {self._url}>"

    def verify(self, record: object, *, request: object = None) -> Verification:
        """Verifies a full record offline with the pinned keys.

        Args:
            record: The record, as `decide` or `get_decision` returned it.
            request: The Decision Request. If you pass it, the hashes of the request are checked too.

        Returns:
            The result. `verified` is True only if the record is unchanged and a pinned key signed it.

        Raises:
            OperatorError: `FILE_UNREADABLE`: the client cannot read the file of pinned keys.
            MaterialRefused: The file of pinned keys does not contain a key registry.
        """
        from gate.verify import verify_record

        return verify_record(record, self._trust(), request_body=request)

    def verify_packet(
        self, packet: object, *, request: object = None, checkpoint: Mapping[str, object] | None = None
    ) -> PacketVerification:
        """Verifies a packet offline with the pinned keys.

        Args:
            packet: The packet, as `export_packet` returned it.
            request: The Decision Request. If you pass it, the hashes of the request are checked too.
            checkpoint: A checkpoint of the chain that you kept. If you pass it, the packet's links are checked with it.

        Returns:
            The result, with one entry for each step.

        Raises:
            OperatorError: `FILE_UNREADABLE`: the client cannot read the file of pinned keys.
            MaterialRefused: The file of pinned keys does not contain a key registry.
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
        """A context manager that runs its body only after a verified yes for this action, and once for each intent.

        If the verdict is review, the body runs after the owner's verified grant. Entering the context manager raises
        `Blocked`, `HeldForReview`, `GateUnavailable`, `Undecidable` or `AlreadyStarted` if the body must not run. The
        guard then sends no receipt: report `blocked` or `reviewed` yourself with `report_execution` if you want one.

        Args:
            rulebook: `rulebook_id@version`, or `rulebook_id` alone for the version of its route; a reference
                `{rulebook_id, version}` or `{rulebook_id, hash}`; or a whole rulebook, if the key has the access
                `register`.
            facts: The facts to decide on, as JSON values. Pass these or `adapter`.
            adapter: The trusted adapter that computes the facts, with its input: `{adapter_id, version,
                manifest_hash, input}`. `list_trusted_adapters` returns the available adapters.
            action: The action that you are about to take, such as `issue_refund`. It is part of the intent and of the
                record's `action_binding`.
            target: The object that the action changes: (system, object id), or a `Target` with the mutation.
            intent: A text that distinguishes this run of the action from other runs on the same target, such as the
                id of a refund order or of a message. Without it, the action happens only once for its target. The
                facts, the adapter, and the rulebook version are not part of the intent, so a retry stays a retry if
                they change.
            context: Further fields of the request's context: `workflow`, `source_record_id`, `actor`, `subject`,
                `amount`, `currency`, and anything else that the rulebook's owner wants to see. They decide nothing.
            outcome_action: The action or actions in a yes that permit the body. Default: `action`. A grant always
                permits `action`.
            max_age: How old the verdict may be when the body starts, in seconds. For a grant, the age counts from its
                creation. Default: 300 for a verdict; a grant is valid until it ends.
            on_review: `raise` raises `HeldForReview` if the action is held for review and its owner has not answered
                yet. `wait` waits for the answer.
            review_seconds: With `wait`: how long to wait at most, in seconds, before the guard checks a last time and
                raises `HeldForReview`. Default: 300.
            recover: A function that the guard calls with `AlreadyStarted` if the action was started before. It
                returns a `Recovery`.
            timeout: The time limit for the decision with all its retries, in seconds. Default: the client's.
            session: An SQLAlchemy session, if the client's store is a `SqlAlchemyStore` in the same database. The
                guard then writes the start and the end of the body in the session's transaction.
                `SqlAlchemyStore.within` explains when this is safe.

        Raises:
            RequestRefused: `SVC_API_REQUEST_INVALID`: an argument is invalid.
            MaterialRefused: `SVC_API_JSON_INVALID`: a fact or the adapter's input is not a JSON value.
            OperatorError: The client has no store, no pinned key, or no store in the session's database.
            StoreUnavailable: With a session: the guard cannot use the store.
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
        """A context manager that runs its body after the owner has granted an action that was held for review.

        It works in any process that has the store. It uses the stored request with its facts and does not ask for a
        new decision. Entering the context manager raises `HeldForReview` if there is no valid grant, `Blocked` if the
        owner refused, `GateUnavailable` or `AlreadyStarted`. It raises `OperatorError` with the code `INTENT_UNKNOWN`
        or `INTENT_NOT_HELD` if the store has no such intent, or if the intent is not held for review.

        Args:
            intent_id: The `intent_id` of the `HeldForReview`.
            max_age: How old the grant may be when the body starts, in seconds. Default: it is valid until it ends.
            on_review: As for `guard`.
            review_seconds: As for `guard`.
            timeout: As for `guard`, for each request about the review.
            session: As for `guard`.

        Raises:
            OperatorError: The client has no store, no pinned key, or no store in the session's database.
            StoreUnavailable: With a session: the guard cannot use the store.
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
        """The guarded block of a proposal, or of a held intent by its id."""

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
    """The client for threads. Threads may share a client, and a forked process may use its parent's client.

    Each endpoint of the service is a method with the name of its operation: `decide`, `report_execution`,
    `export_packet` and so on.
    """

    def _open(self, transport: httpx.BaseTransport | None, delivery_transport: httpx.BaseTransport | None) -> None:
        self._engine = background = Engine(self._url, self._credentials, transport)
        if delivery_transport is not None:
            background = Engine(self._url, self._credentials, delivery_transport)
        self._courier = self._courier_of(background)

    def send(self, call: Call[T], *, timeout: float | None = None) -> Answer[T]:
        """Sends a call from `gate.client.operations` and returns the status and headers as well as the body.

        Args:
            call: The call, such as `operations.decide(request)`.
            timeout: The time limit with all retries, in seconds. Default: the client's `timeout`.

        Raises:
            ApiError: The request failed.
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
        """A decorator that guards every call of a function, as `guard` does for a block.

        If the function has a parameter `permit`, it receives the permit by that name.

        Args:
            rulebook: As for `guard`.
            facts: A function that takes the arguments of the call and returns the facts. Pass this or `adapter`.
            adapter: A function that takes the arguments of the call and returns the adapter with its input.
            action: As for `guard`.
            target: As for `guard`, or a function that takes the arguments of the call and returns the target.
            more: Further arguments of `guard`, except `session`. `intent` and `context` may be functions of the
                arguments of the call, too.

        Raises:
            RequestRefused: `SVC_API_REQUEST_INVALID`: you passed both `facts` and `adapter`, or neither.
            TypeError: The function is a coroutine function or a generator, so its body would run outside the guard.
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
        """Returns the permit of a started action, so that you can report an outcome later.

        It works at any time and in any process that has the store.

        Args:
            intent_id: The `intent_id` of the permit.

        Raises:
            OperatorError: `INTENT_UNKNOWN`: the store has no such intent. `INTENT_NOT_STARTED`: the action was never
                started, or `gate client forget` removed its record.
            StoreUnavailable: The client cannot use the store.
        """
        return Permit(self._engine, self._courier.wake, self._kept_in(), *begun(self._kept_in(), intent_id), ended=True)

    def flush(self, *, again: bool = False) -> Delivery:
        """Delivers all waiting reports in order. It stops early if the service does not accept reports now.

        Args:
            again: Whether to start with the reports that the service refused before.

        Returns:
            How many reports were delivered and refused, and why others still wait.

        Raises:
            StoreUnavailable: The client cannot use the store.
            OperatorError: `INTENTS_MISSING`: the client has no store.
        """
        return self._courier.deliver(again=again)

    def close(self) -> None:
        """Delivers waiting reports for at most five seconds, and closes the connections."""
        self._courier.close(LAST_SECONDS)
        self._engine.close()

    def __enter__(self) -> Client:
        """Returns the client."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Closes the client."""
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

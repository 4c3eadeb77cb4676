"""An invocation of an adapter, from the request to the facts and their description in the record.

For example:

    adapters = TrustedAdapters(registered(), workers)
    invocation = adapters.invocation(request["adapter"])     # checked; nothing has run
    facts = adapters.facts(invocation)                       # one call, in a worker of its own
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final, cast

from gate.adapters.manifest import Adapter, Manifest
from gate.adapters.registry import find_adapter
from gate.adapters.worker import WAIT_SECONDS, WORKERS, Measures, Workers, failed
from gate.encoding.canonical import canonical, content_hash, is_plain
from gate.encoding.shapes import shape, to_mend
from gate.encoding.strict_json import MAX_REQUEST_DEPTH, parse
from gate.errors import AdapterRefused, FieldError, MaterialRefused, member
from gate.rulebooks.documents import AdapterInvocation, TrustedAdapter
from gate.rulebooks.facts import Facts

REHEARSALS: Final = max(1, WORKERS // 2)
"""How many replays and counterfactuals run adapters at a time; the other workers are for decisions."""

# Those that wait hold a thread of the server's each.
_REHEARSALS_ASKED: Final = 32


@dataclass(frozen=True, slots=True)
class Invocation:
    """An adapter with an input that it takes.

    Attributes:
        adapter: The adapter.
        given: The input, as canonical JSON.
    """

    adapter: Adapter
    given: bytes


class TrustedAdapters:
    """The registered adapters, and what runs them.

    Attributes:
        adapters: The adapters.
        damaged: The names of those that are registered as well, whose files are not those that were released.
        waiting: What a thread enters while it waits for a worker.
    """

    def __init__(
        self,
        adapters: Sequence[Adapter],
        workers: Workers,
        *,
        damaged: Iterable[str] = (),
        rehearsal_seconds: float = 10.0,
    ) -> None:
        """Takes the adapters, and what runs them.

        Args:
            adapters: Those that can be invoked.
            workers: What runs them.
            damaged: The names of those that are registered and cannot.
            rehearsal_seconds: How long the calls of one replay, or of all scenarios of a request, may take together.
        """
        self.adapters: Final = tuple(adapters)
        self.damaged: Final = tuple(damaged)
        self.waiting: Callable[[], AbstractContextManager[None]] = nullcontext
        self._workers = workers
        self._asked = threading.BoundedSemaphore(_REHEARSALS_ASKED)
        self._rehearsals = threading.BoundedSemaphore(REHEARSALS)
        self._rehearsal_seconds = rehearsal_seconds

    def invocation(self, sent: object, *, root: str = "adapter") -> Invocation:
        """The invocation that a request sends.

        Args:
            sent: The parsed JSON value of its member `adapter`.
            root: What to call that member in the paths of errors.

        Raises:
            AdapterRefused: `TRUSTED_ADAPTER_INVALID`, `TRUSTED_ADAPTER_NOT_REGISTERED`,
                `TRUSTED_ADAPTER_MANIFEST_MISMATCH` or `TRUSTED_ADAPTER_INPUT_INVALID`, whichever comes first.
            AdapterFailed: `TRUSTED_ADAPTER_EXECUTION_FAILED`: its files are damaged.
        """
        if errors := shape("trusted-adapter-invocation").errors(sent, root=root):
            raise AdapterRefused(
                "TRUSTED_ADAPTER_INVALID", to_mend(f"{root} is not a valid invocation", errors), errors
            )
        asked = cast("AdapterInvocation", sent)
        adapter = self._find(asked["adapter_id"], asked["version"])
        if adapter is None:
            raise AdapterRefused(
                "TRUSTED_ADAPTER_NOT_REGISTERED",
                f"No trusted adapter {asked['adapter_id']}@{asked['version']} is registered; GET "
                "/api/decision/adapters lists the registered ones.",
                details={"registered_adapters": [registered.name for registered in self.adapters]},
            )
        if asked["manifest_hash"] != adapter.manifest_hash:
            raise AdapterRefused(
                "TRUSTED_ADAPTER_MANIFEST_MISMATCH",
                f"{root}.manifest_hash is not the registered hash of {adapter.name}. GET /api/decision/adapters "
                "shows it.",
                details={"manifest_hash": asked["manifest_hash"], "registered_manifest_hash": adapter.manifest_hash},
            )
        return accepted_invocation(adapter, asked["input"], root=root)

    def pinned(self, trusted_adapter: Mapping[str, object], given: object) -> Invocation | None:
        """The invocation that a record tells of, over the input of its request; None where there is no such adapter.

        Raises:
            AdapterRefused: `TRUSTED_ADAPTER_INPUT_INVALID`.
            AdapterFailed: `TRUSTED_ADAPTER_EXECUTION_FAILED`: its files are damaged.
        """
        adapter = self._find(str(trusted_adapter.get("adapter_id")), str(trusted_adapter.get("version")))
        if adapter is None or any(trusted_adapter.get(name) != value for name, value in adapter.dependency.items()):
            return None
        return accepted_invocation(adapter, given)

    def facts(self, invocation: Invocation) -> Facts:
        """The facts that an adapter makes, in one call.

        Raises:
            AdapterFailed: `TRUSTED_ADAPTER_OUTPUT_INVALID`, or what `Workers.run` raises.
        """
        adapter = invocation.adapter
        with self.waiting():
            answer = self._workers.run(adapter, invocation.given)
        try:
            facts = parse(answer, max_depth=MAX_REQUEST_DEPTH)
        except MaterialRefused as error:
            why = "its facts are not valid JSON of the protocol"
            raise failed(adapter.name, "OUTPUT_INVALID", why) from error
        if errors := adapter.output_shape.errors(facts, root="adapter_facts"):
            where = ", ".join(error.field for error in errors[:_MOST_NAMED])
            raise failed(adapter.name, "OUTPUT_INVALID", f"its facts do not match its output schema at {where}")
        return Facts(facts, is_plain(facts), trusted_adapter(invocation, facts))

    def rehearsed(self, invocations: Sequence[Invocation]) -> list[Facts]:
        """The facts of decisions that are not recorded, made in one call after another.

        Only `REHEARSALS` of these run at a time, so that binding decisions still find free workers.

        Raises:
            AdapterFailed: As `facts`; `TRUSTED_ADAPTER_EXECUTION_TIMEOUT` also where all of them take too long.
        """
        if not invocations:
            return []
        name = invocations[0].adapter.name
        busy = f"{REHEARSALS} other replays or simulations are running adapters, which is the limit"
        if not self._asked.acquire(blocking=False):
            raise failed(name, "EXECUTION_TIMEOUT", busy)
        try:
            with self.waiting():
                begins = self._rehearsals.acquire(timeout=WAIT_SECONDS)
            if not begins:
                raise failed(name, "EXECUTION_TIMEOUT", busy)
            try:
                return self._one_after_another(invocations)
            finally:
                self._rehearsals.release()
        finally:
            self._asked.release()

    def _one_after_another(self, invocations: Sequence[Invocation]) -> list[Facts]:
        deadline = time.monotonic() + self._rehearsal_seconds
        made: list[Facts] = []
        for invocation in invocations:
            if time.monotonic() >= deadline:
                why = f"{len(made)} of {len(invocations)} calls took {self._rehearsal_seconds:g} seconds"
                name = invocation.adapter.name
                raise failed(name, "EXECUTION_TIMEOUT", f"{why}. Send fewer scenarios at a time")
            made.append(self.facts(invocation))
        return made

    def start(self) -> None:
        """Starts what runs them, and does not wait until it can."""
        self._workers.start()

    def measures(self, *, wait: float = WAIT_SECONDS) -> Measures:
        """What holds a worker on this machine; `wait` is how long to wait until that is known, in seconds."""
        return self._workers.measures(wait=wait)

    def manifests(self) -> list[Manifest]:
        """The manifest of each adapter, with manifest_hash."""
        return [adapter.manifest for adapter in self.adapters]

    def close(self) -> None:
        """Ends what runs them."""
        self._workers.close()

    def _find(self, adapter_id: str, version: str) -> Adapter | None:
        name = f"{adapter_id}@{version}"
        if name in self.damaged:
            why = "its files differ from the release. Install the release again"
            raise failed(name, "EXECUTION_FAILED", why)
        return find_adapter(self.adapters, adapter_id, version)


_MOST_NAMED: Final = 5


def accepted_invocation(adapter: Adapter, given: object, *, root: str = "adapter") -> Invocation:
    """An invocation of an adapter.

    Raises:
        AdapterRefused: `TRUSTED_ADAPTER_INPUT_INVALID`: it takes no such input.
    """
    at = member(root, "input")
    if errors := adapter.input_shape.errors(given, root=at):
        raise input_refused(adapter, at, errors)
    return Invocation(adapter, canonical(given))


def input_refused(adapter: Adapter, at: str, errors: list[FieldError]) -> AdapterRefused:
    """The refusal of an input that stands at a path."""
    return AdapterRefused(
        "TRUSTED_ADAPTER_INPUT_INVALID", to_mend(f"{at} is not a valid input of {adapter.name}", errors), errors
    )


def trusted_adapter(invocation: Invocation, facts: Mapping[str, object]) -> TrustedAdapter:
    """What a record and its attestation say of an invocation.

    It says nothing about the machine that it ran on. Only the status shows how the worker was contained there.
    """
    manifest = invocation.adapter.manifest
    return {
        "manifest_version": manifest["manifest_version"],
        "adapter_id": manifest["adapter_id"],
        "version": manifest["version"],
        "implementation_revision": manifest["implementation_revision"],
        "implementation_hash": manifest["implementation_hash"],
        "manifest_hash": invocation.adapter.manifest_hash,
        "input_hash": hashlib.sha256(invocation.given).hexdigest(),
        "output_hash": content_hash(facts),
        "execution_isolation": manifest["execution_isolation"],
        "capability_enforcement": manifest["capability_enforcement"],
        "execution_timeout_ms": invocation.adapter.timeout_ms,
    }

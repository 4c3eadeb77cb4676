"""Where a decision's rulebook and facts come from: the request, the scope's registered rulebooks, an adapter."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gate.adapters.invocation import Invocation, TrustedAdapters
from gate.decisions.claims import cap_reached
from gate.decisions.signing import Signing
from gate.encoding.canonical import content_hash
from gate.errors import FieldError, RulebookRefused, ServiceUnavailable, member
from gate.ids import timestamp
from gate.ledger.access.authority import Scope
from gate.ledger.access.caller import Caller
from gate.ledger.chain.changes import ActiveRoute, Changes
from gate.ledger.chain.writer import CapReached
from gate.ledger.routes import Routes
from gate.ledger.rulebooks import OperatorAct, Registered, RulebookRegistry, version_conflict
from gate.records.attestation import registration
from gate.records.documents import Registration, RulebookPointer
from gate.records.request import DecisionRequest
from gate.rulebooks.advice import find_warnings
from gate.rulebooks.documents import AdapterDependency, Annotations
from gate.rulebooks.facts import Facts
from gate.rulebooks.rulebook import Rulebook, RulebookCache


class Sources:
    """The rulebooks and adapters that decisions are made from.

    Attributes:
        adapters: The adapters that requests may invoke.
        cache: Rulebooks that were validated and compiled before, by their hash.
        routes: Where rulebook ids lead in each scope.
    """

    def __init__(
        self, registry: RulebookRegistry, changes: Changes, adapters: TrustedAdapters, signing: Signing
    ) -> None:
        """Takes the scopes' registered rulebooks and routes, the adapters, and what signs a registration."""
        self.adapters: Final = adapters
        self.cache: Final = RulebookCache()
        self.routes: Final = Routes(changes)
        self._registry = registry
        self._signing = signing

    def now(self) -> datetime:
        """The moment by the service's clock."""
        return self._signing.now()

    def rulebook(
        self, scope_id: str, request: DecisionRequest, route: ActiveRoute | None = None, *, root: str = ""
    ) -> Rulebook:
        """The rulebook that a request sends, or refers to in its scope.

        Args:
            scope_id: The scope.
            request: The request.
            route: The route of a rulebook id without a version; None for the active route.
            root: What to call the request in the paths of errors; nothing where empty.

        Raises:
            RulebookRefused: `RULEBOOK_INVALID` or `RULEBOOK_REF_UNKNOWN`.
            ServiceUnavailable: As `registered_rulebook`.
        """
        if request.rulebook_ref is None:
            return self.cache.load(request.rulebook, root=member(root, "rulebook"), plain=request.plain)
        return self.referenced(scope_id, request.rulebook_ref, route)

    def referenced(self, scope_id: str, reference: RulebookPointer, route: ActiveRoute | None = None) -> Rulebook:
        """The registered rulebook that a reference names: {hash}, {rulebook_id, version}, or {rulebook_id} for the
        version that its route leads to.

        Args:
            scope_id: The scope.
            reference: The reference.
            route: As `rulebook` takes it.

        Raises:
            RulebookRefused: `RULEBOOK_REF_UNKNOWN`.
            ServiceUnavailable: As `registered_rulebook`.
        """
        if "hash" in reference:
            registered = self._registry.find(scope_id, reference["hash"])
        elif "version" in reference:
            registered = self._registry.find_version(scope_id, reference["rulebook_id"], reference["version"])
        else:
            found = (route or self.routes.active(scope_id, reference["rulebook_id"])).route
            registered = None if found is None else self._registry.find(scope_id, found["to"]["hash"])
        if registered is None:
            raise self._unknown(scope_id, reference)
        return self.registered_rulebook(scope_id, registered.hash)

    def _unknown(self, scope_id: str, reference: RulebookPointer) -> RulebookRefused:
        """`RULEBOOK_REF_UNKNOWN`, with the versions that a caller may have meant."""
        if "hash" in reference:
            return _unknown_reference(f"No rulebook with the hash {reference['hash']} is registered in this scope.")
        rulebook_id, version = reference["rulebook_id"], reference.get("version")
        versions = self._registry.versions(scope_id, rulebook_id, limit=_VERSIONS_TOLD + 1)
        if not versions:
            return _unknown_reference(
                f"No version of {rulebook_id} is registered in this scope.", registered_versions=[]
            )
        told = versions[:_VERSIONS_TOLD]
        older = ", and older versions" if len(versions) > len(told) else ""
        there = f"Registered versions, newest first: {', '.join(told)}{older}."
        if version is None:
            return RulebookRefused(
                "RULEBOOK_REF_UNKNOWN",
                f"{rulebook_id} has no route in this scope, so its id alone does not identify a version. {there} "
                "Add a version to rulebook_ref, or have the operator apply a migration with `gate migrate`.",
                details={"registered_versions": told},
            )
        return _unknown_reference(
            f"{rulebook_id} {version} is not registered in this scope. {there}", registered_versions=told
        )

    def registered_rulebook(self, scope_id: str, hash_: str) -> Rulebook:
        """A rulebook that is registered in a scope, by its hash.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: it is not stored as it was registered.
        """
        rulebook = self.cache.get(hash_)
        if rulebook is None:
            body = self._registry.body(scope_id, hash_)
            if body is None or content_hash(body) != hash_:
                raise ServiceUnavailable(
                    "SVC_STORAGE_UNAVAILABLE",
                    f"The stored copy of rulebook {hash_} differs from the registered rulebook. Send the whole "
                    "rulebook in the request, and have the operator run `gate chain check`.",
                )
            rulebook = self.cache.load(body)
        return rulebook

    def invocation(self, request: DecisionRequest, *, root: str = "") -> Invocation | None:
        """The invocation of an adapter that a request sends, checked; None where it sends its facts.

        Raises:
            AdapterRefused: As `TrustedAdapters.invocation`.
        """
        if request.adapter is None:
            return None
        return self.adapters.invocation(request.adapter, root=member(root, "adapter"))

    def facts(self, request: DecisionRequest, invocation: Invocation | None) -> Facts:
        """The facts of a request: those that it sends, or those that its adapter makes, in one call.

        Raises:
            AdapterFailed: As `TrustedAdapters.facts`.
        """
        return Facts(request.inputs, request.plain) if invocation is None else self.adapters.facts(invocation)

    def registered(self, scope_id: str, rulebook: Rulebook, dependency: AdapterDependency | None) -> Registered | None:
        """The registration of a rulebook in a scope; None if it is not registered.

        Args:
            scope_id: The scope.
            rulebook: The rulebook.
            dependency: The adapter that makes its facts now, as `register` takes it.

        Raises:
            RulebookRefused: `RULEBOOK_VERSION_CONFLICT`.
        """
        registered = self._registry.find(scope_id, rulebook.hash)
        if registered is not None:
            require_dependency(registered, dependency)
        return registered

    def require_registrable(self, caller: Caller, rulebook: Rulebook) -> None:
        """Requires that a caller may register a rulebook that is new to the scope, before anything is done for it.

        Raises:
            AccessForbidden: The key may not, or not any more.
            RulebookRefused: `RULEBOOK_VERSION_CONFLICT`: its version names another rulebook.
        """
        caller.confirm().require("register")
        another = self._registry.find_version(caller.scope_id, rulebook.rulebook_id, rulebook.version)
        if another is not None and another.hash != rulebook.hash:
            raise version_conflict(rulebook, another.hash)

    def register(
        self,
        scope_id: str,
        rulebook: Rulebook,
        dependency: AdapterDependency | None = None,
        act: OperatorAct | None = None,
    ) -> Registered:
        """Registers a rulebook in a scope, or finds it registered.

        Args:
            scope_id: The scope.
            rulebook: The rulebook.
            dependency: {adapter_id, version, manifest_hash, implementation_hash} of the adapter that makes its facts;
                None where callers send them.
            act: What to log of a first registration; None where a request registers.

        Raises:
            RulebookRefused: `RULEBOOK_VERSION_CONFLICT`.
        """
        metadata, _ = self._registration(scope_id, rulebook, dependency)
        registered = self._registry.register(scope_id, rulebook, metadata, act)
        require_dependency(registered, dependency)
        return registered

    def register_for_record(
        self, scope_id: str, rulebook: Rulebook, dependency: AdapterDependency | None
    ) -> Registered:
        """Registers a rulebook as `register`, for a record to be made now.

        Raises:
            RulebookRefused: `RULEBOOK_VERSION_CONFLICT`.
            LimitReached: `SVC_API_MONTHLY_CAP_EXCEEDED`: the scope may make no more records, and nothing is registered.
        """
        metadata, now = self._registration(scope_id, rulebook, dependency)
        registered = self._registry.register_for_record(scope_id, rulebook, metadata, timestamp(now)[:7])
        if isinstance(registered, CapReached):
            raise cap_reached(registered.cap, now)
        require_dependency(registered, dependency)
        return registered

    def register_file(
        self, scope: Scope, rulebook: Rulebook, annotations: Annotations, dependency: AdapterDependency | None
    ) -> RegisteredFile:
        """Registers a rulebook from an operator's file, and keeps its annotations with the registration.

        The rules are those of a request: the first body under an id and version stays. Both acts are logged.

        Args:
            scope: The scope.
            rulebook: The rulebook, without annotations.
            annotations: Its annotations; where there are none, those of an earlier registration stay.
            dependency: The adapter that makes its facts, as `register` takes it.

        Raises:
            RulebookRefused: `RULEBOOK_VERSION_CONFLICT`.
            ServiceUnavailable: Storage or signing is not available.
        """
        _, now = self._signing()
        act = OperatorAct(scope.name, now)
        known = self.registered(scope.scope_id, rulebook, dependency) is not None
        registered = self.register(scope.scope_id, rulebook, dependency, act)
        annotated = bool(annotations) and self._registry.annotate(scope.scope_id, rulebook, annotations, act)
        return RegisteredFile(registered, not known, annotated)

    def warnings(self, rulebook: Rulebook, dependency: AdapterDependency | None) -> list[FieldError]:
        """The warnings about a rulebook, as `advice.find_warnings` gives them.

        Args:
            rulebook: The rulebook.
            dependency: The adapter that makes its facts, as `register` takes it.
        """
        if dependency is None:
            return find_warnings(rulebook.body)
        for adapter in self.adapters.adapters:
            if adapter.dependency == dependency:
                return find_warnings(rulebook.body, adapter.facts_schema)
        # An adapter that this release does not have: what it makes is unknown.
        return []

    def _registration(
        self, scope_id: str, rulebook: Rulebook, dependency: AdapterDependency | None
    ) -> tuple[Registration, datetime]:
        signers, now = self._signing()
        return registration(
            rulebook.reference, scope_id, timestamp(now), signers.registry, adapter_dependency=dependency
        ), now


@dataclass(frozen=True, slots=True)
class RegisteredFile:
    """A rulebook that was registered from a file.

    Attributes:
        registered: Its registration.
        created: Whether this call registered it; False where it was registered before.
        annotated: Whether this call changed its annotations.
    """

    registered: Registered
    created: bool
    annotated: bool


def _unknown_reference(what: str, **details: list[str]) -> RulebookRefused:
    return RulebookRefused(
        "RULEBOOK_REF_UNKNOWN",
        f"{what} Correct rulebook_ref, or register the rulebook: send it once as rulebook with a key that has "
        "the access register, or have the operator run `gate rulebook register`.",
        details=details,
    )


_VERSIONS_TOLD: Final = 10


def require_dependency(registered: Registered, dependency: AdapterDependency | None) -> None:
    """Requires that a rulebook's facts come from where they came from when it was registered.

    Otherwise, a rulebook that is bound to an adapter would decide over any facts that a caller sends.

    Args:
        registered: The registration.
        dependency: The adapter that makes the facts now, as `register` takes it.

    Raises:
        RulebookRefused: `RULEBOOK_VERSION_CONFLICT`.
    """
    bound = registered.metadata.get("adapter_dependency")
    if bound != dependency:
        raise RulebookRefused(
            "RULEBOOK_VERSION_CONFLICT",
            f"{registered.rulebook_id} {registered.version} is registered with {_source(bound)}, but this "
            f"request has {_source(dependency)}. Use the registered source, or give the rulebook a new version.",
            details={"adapter_dependency": dependency, "registered_adapter_dependency": bound},
        )


def _source(dependency: AdapterDependency | None) -> str:
    if dependency is None:
        return "facts from context.inputs"
    return f"facts from the adapter {dependency.get('adapter_id')}@{dependency.get('version')}"

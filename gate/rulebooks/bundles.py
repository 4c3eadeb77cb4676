"""The rulebooks of the product itself: the active ones, and the historical ones.

They are the whole public policy bundle registry. It does not include the rulebooks that scopes register.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.encoding.strict_json import parse
from gate.rulebooks.documents import BundleEntry, RulebookBody
from gate.rulebooks.rulebook import Rulebook, load

ACTIVE: Final = "active"
HISTORICAL: Final = "historical"


@dataclass(frozen=True, slots=True)
class OwnRulebook:
    """A rulebook that travels with the product.

    Attributes:
        rulebook: The rulebook.
        status: `active`, or `historical` where a later version took its place.
    """

    rulebook: Rulebook
    status: str

    @property
    def source(self) -> str:
        """The public path of its body."""
        return f"/rules/{self.rulebook.rulebook_id}/{self.rulebook.version}.json"

    def entry(self) -> BundleEntry:
        """Its entry in the policy bundle registry; `policy_bundle` and its hash are as in the records it decides."""
        bundle = self.rulebook.policy_bundle
        return {
            "policy_id": self.rulebook.rulebook_id,
            "policy_version": self.rulebook.version,
            "policy_hash": self.rulebook.hash,
            "policy_bundle": bundle,
            "policy_bundle_hash": content_hash(bundle),
            "status": self.status,
            "source": self.source,
        }


@cache
def own_rulebooks() -> tuple[OwnRulebook, ...]:
    """The product's rulebooks, by policy id and version."""
    folder = resources.path("data", "rulebooks")
    found = [
        OwnRulebook(load(parse(file.read_bytes())), status)
        for status, files in ((ACTIVE, folder.glob("*.json")), (HISTORICAL, folder.glob("historical/*.json")))
        for file in files
    ]
    return tuple(sorted(found, key=lambda own: (own.rulebook.rulebook_id, own.rulebook.version)))


def active_rulebooks() -> list[Rulebook]:
    """Those that are active: one for each policy id."""
    return [own.rulebook for own in own_rulebooks() if own.status == ACTIVE]


@cache
def entries() -> tuple[BundleEntry, ...]:
    """The entries of the policy bundle registry. Shared: callers do not change them."""
    return tuple(own.entry() for own in own_rulebooks())


def find_entry(hash_: str) -> BundleEntry | None:
    """The entry with that policy_bundle_hash or policy_hash."""
    return next((entry for entry in entries() if hash_ in (entry["policy_bundle_hash"], entry["policy_hash"])), None)


def find_body(policy_id: str, version: str) -> RulebookBody | None:
    """The body of one of the product's rulebooks, or None."""
    return _bodies().get((policy_id, version))


@cache
def _bodies() -> dict[tuple[str, str], RulebookBody]:
    return {(own.rulebook.rulebook_id, own.rulebook.version): own.rulebook.body for own in own_rulebooks()}

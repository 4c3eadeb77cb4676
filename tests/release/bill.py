"""The software bill of materials: what the product runs on, in CycloneDX 1.6.

It lists the packages of the base install and of the extras `server` and `workbench` on the machine that makes it. Each
has its version, its license, the hashes of its files in requirements.lock, and what it needs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.contrib.this.builders import this_component
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.lifecycle import LifecyclePhase, PredefinedLifecycle
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from gate import __version__
from tests.release.licenses import license_of
from tests.release.packages import Package, direct

NEEDED_BY: Final = "decision-gate:needed-by"
"""The property of a component that says which part of the product needs it: `base`, `server` or `workbench`."""

MADE_ON: Final = "decision-gate:made-on"
"""The property that says for which Python and platform the bill is. The lock has other versions for some others."""

_PYTHON: Final = "{}.{}".format(*sys.version_info)
_INDEX: Final = "https://pypi.org/simple"


def bill_of_materials(packages: Mapping[str, Package], made: Iterable[Path], at: datetime) -> str:
    """Makes the document.

    Args:
        packages: The packages that the product runs on, by name.
        made: The files of the release itself.
        at: The moment that the document states.

    Returns:
        JSON. The same arguments give the same text.
    """
    licenses = LicenseFactory()
    components = {name: _component(package, licenses) for name, package in packages.items()}
    files = sorted(made)
    product = Component(
        name="decision-gate",
        version=__version__,
        type=ComponentType.APPLICATION,
        bom_ref="decision-gate",
        purl=PackageURL("pypi", None, "decision-gate", __version__),
        licenses=[licenses.make_from_string("MIT")],
        external_references=[
            ExternalReference(type=ExternalReferenceType.DISTRIBUTION, url=XsUri(file.name), hashes=[_hash(file)])
            for file in files
        ],
    )
    bill = Bom(components=components.values())
    bill.metadata.component = product
    bill.metadata.timestamp = at
    bill.metadata.properties.add(Property(name=MADE_ON, value=f"Python {_PYTHON}, {sys.platform}"))
    bill.metadata.lifecycles.add(PredefinedLifecycle(LifecyclePhase.BUILD))
    bill.metadata.tools.components.add(this_component())
    bill.register_dependency(product, [components[name] for name in sorted(direct())])
    for name, package in packages.items():
        bill.register_dependency(components[name], [components[each] for each in sorted(package.requires)])
    # Drawn from the content, not at random, so that the same release has the same document.
    bill.serial_number = uuid5(NAMESPACE_URL, JsonV1Dot6(bill).output_as_string().replace(str(bill.serial_number), ""))
    text = str(JsonV1Dot6(bill).output_as_string(indent=2)) + "\n"
    if (wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)) is not None:
        raise ValueError(f"The bill of materials is no valid CycloneDX: {wrong}")
    return text


def _component(package: Package, licenses: LicenseFactory) -> Component:
    stated = license_of(package.installed)
    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=each) for each in package.locked.hashes]
    return Component(
        name=package.name,
        version=package.locked.version,
        type=ComponentType.LIBRARY,
        bom_ref=package.name,
        purl=PackageURL("pypi", None, package.name, package.locked.version),
        licenses=[licenses.make_from_string(stated)] if stated else [],
        external_references=[
            ExternalReference(
                type=ExternalReferenceType.DISTRIBUTION,
                url=XsUri(f"{_INDEX}/{package.name}/"),
                comment="the SHA-256 of each file that requirements.lock accepts",
                hashes=hashes,
            )
        ],
        properties=[Property(name=NEEDED_BY, value=part) for part in sorted(package.needed_by)],
    )


def _hash(file: Path) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=sha256(file.read_bytes()).hexdigest())

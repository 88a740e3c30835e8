"""Writes the software bill of materials of a release, in CycloneDX.

python -m generators.sbom DIRECTORY SECONDS    into a directory; of a release of that Unix time
"""

import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from generators.packages import PROJECT, Package, extras, installed_by

ROOT = Path(__file__).parents[1]


def bill_of_materials(built_s: int) -> str:
    """The packages, their licenses and hashes, and which extras install them, as JSON.

    They are those of this platform.
    """
    base = installed_by()
    by_extra = {extra: installed_by(extra) for extra in extras()}
    packages = installed_by(*extras())
    hashes = _locked_hashes()
    components = {
        name: _component(
            package,
            hashes.get(name, ()),
            installed_with=[
                extra for extra, found in by_extra.items() if name in found.keys() - base.keys()
            ],
        )
        for name, package in packages.items()
    }
    bom = Bom(components=[each for name, each in components.items() if name != PROJECT])
    bom.metadata.component = components[PROJECT]
    bom.metadata.timestamp = datetime.fromtimestamp(built_s, UTC)
    for name, package in packages.items():
        bom.register_dependency(
            components[name], [components[each] for each in sorted(package.requires)]
        )
    described = "\n".join(f"{name}=={package.version}" for name, package in packages.items())
    bom.serial_number = uuid5(NAMESPACE_URL, described)
    return JsonV1Dot6(bom).output_as_string(indent=2)


def _component(package: Package, hashes: Iterable[str], *, installed_with: list[str]) -> Component:
    purl = PackageURL("pypi", name=package.name, version=package.version)
    return Component(
        type=ComponentType.APPLICATION if package.name == PROJECT else ComponentType.LIBRARY,
        name=package.name,
        version=package.version,
        bom_ref=purl.to_string(),
        purl=purl,
        licenses=[LicenseFactory().make_from_string(package.license)] if package.license else [],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each) for each in hashes],
        scope=ComponentScope.OPTIONAL if installed_with else ComponentScope.REQUIRED,
        properties=[Property(name="kafscale:extra", value=extra) for extra in installed_with],
    )


def _locked_hashes() -> dict[str, list[str]]:
    """The SHA-256 of the files of each package: wheels for several platforms, and the source."""
    lock = (ROOT / "requirements.lock").read_text()
    return {
        name: re.findall(r"--hash=sha256:([0-9a-f]{64})", block)
        for name, block in re.findall(r"^([a-z0-9-]+)==((?:.+\\\n)+.*)$", lock, re.MULTILINE)
    }


if __name__ == "__main__":
    directory, built_s = sys.argv[1:]
    version = installed_by()[PROJECT].version
    Path(directory, f"{PROJECT}-{version}.cdx.json").write_text(
        bill_of_materials(int(built_s)) + "\n"
    )

"""The packages that an installation of Kafscale brings, as the installed environment knows them."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = "kafscale"


@dataclass(frozen=True)
class Package:
    """An installed package, and the packages that it requires."""

    name: str
    version: str
    license: str
    """As the package states it: an SPDX expression, or the names of its classifiers."""
    requires: frozenset[str]


def extras() -> list[str]:
    """The extras for users, which container images are made of."""
    names = distribution(PROJECT).metadata.get_all("Provides-Extra") or []
    return sorted(set(names) - {"dev"})


def installed_by(*chosen: str) -> Mapping[str, Package]:
    """Kafscale and what it installs with these extras on this platform, by name."""
    wanted = {(PROJECT, extra) for extra in ("", *chosen)}
    required: dict[tuple[str, str], set[tuple[str, str]]] = {}
    while wanted:
        name, extra = wanted.pop()
        required[name, extra] = found = set()
        for text in distribution(name).requires or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                dependency = canonicalize_name(requirement.name)
                found |= {(dependency, each) for each in ("", *requirement.extras)}
        wanted |= found - required.keys()
    return {
        name: _package(
            name,
            frozenset(
                dependency
                for (parent, _), found in required.items()
                for dependency, _ in found
                if parent == name and dependency != name
            ),
        )
        for name in sorted({name for name, _ in required})
    }


def _package(name: str, requires: frozenset[str]) -> Package:
    found = distribution(name)

    def stated(field: str) -> list[str]:
        return found.metadata.get_all(field) or []

    classifiers = [
        each.rpartition(" :: ")[2]
        for each in stated("Classifier")
        if each.startswith("License :: ") and not each.endswith("OSI Approved")
    ]
    first_lines = [each.partition("\n")[0] for each in stated("License")]
    licenses = stated("License-Expression") or classifiers or first_lines
    return Package(name=name, version=found.version, license=", ".join(licenses), requires=requires)

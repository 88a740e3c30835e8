"""The licenses of what an installation of Kafscale brings, as its packages state them."""

import re
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NOTICE = Path(__file__).parents[1] / "NOTICE"
PERMISSIVE = re.compile(
    r"\b(0BSD|Apache|BSD|ISC|MIT|PSF-2\.0|Python Software Foundation)\b", re.IGNORECASE
)
RESTRICTIVE = re.compile(
    r"(GPL|MPL|EPL|EUPL|CDDL|SSPL|BUSL|General Public|Mozilla Public|Eclipse Public)", re.IGNORECASE
)
NOT_IN_IMAGES = {"dev"}


def license_of(package: Distribution) -> str:
    metadata = package.metadata
    classifiers = [
        each.rpartition(" :: ")[2]
        for each in metadata.get_all("Classifier") or []
        if each.startswith("License :: ") and not each.endswith("OSI Approved")
    ]
    stated = metadata.get("License-Expression") or ", ".join(classifiers)
    return stated or (metadata.get("License") or "").partition("\n")[0] or "none stated"


def installed_by(extra: str) -> dict[str, str]:
    """The license of each package that `kafscale[extra]` installs on this platform."""
    licenses: dict[str, str] = {}
    wanted = {("kafscale", extra)}
    seen: set[tuple[str, str]] = set()
    while wanted:
        name, extra = wanted.pop()
        seen.add((name, extra))
        package = distribution(name)
        if name != "kafscale":
            licenses[name] = license_of(package)
        for text in package.requires or []:
            requirement = Requirement(text)
            if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
                continue
            dependency = canonicalize_name(requirement.name)
            wanted |= {(dependency, each) for each in ("", *requirement.extras)} - seen
    return licenses


def test_broker_installs_packages_with_permissive_licenses_only():
    offenders = {
        name: stated
        for name, stated in installed_by("").items()
        if RESTRICTIVE.search(stated) or not PERMISSIVE.search(stated)
    }
    assert not offenders


def test_notice_names_every_other_license_that_extras_install():
    extras = set(distribution("kafscale").metadata.get_all("Provides-Extra") or []) - NOT_IN_IMAGES
    expected = {
        (name, extra)
        for extra in extras
        for name, stated in installed_by(extra).items()
        if RESTRICTIVE.search(stated)
    }
    noted = {
        (name, extra)
        for name, listed in re.findall(r"^\* (\S+) \(([^)]+)\)", NOTICE.read_text(), re.MULTILINE)
        for extra in listed.split(", ")
    }
    assert noted == expected

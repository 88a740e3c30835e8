"""The licenses of what an installation of Kafscale brings, as its packages state them."""

import re
from pathlib import Path

from generators.packages import extras, installed_by

NOTICE = Path(__file__).parents[1] / "NOTICE"
PERMISSIVE = re.compile(
    r"\b(0BSD|Apache|BSD|ISC|MIT|PSF-2\.0|Python Software Foundation)\b", re.IGNORECASE
)
RESTRICTIVE = re.compile(
    r"(GPL|MPL|EPL|EUPL|CDDL|SSPL|BUSL|General Public|Mozilla Public|Eclipse Public)", re.IGNORECASE
)


def test_broker_installs_packages_with_permissive_licenses_only():
    licenses = {name: package.license for name, package in installed_by().items()}
    assert licenses["kafscale"] == "Apache-2.0"
    assert len(licenses) > 20
    offenders = {
        name: text
        for name, text in licenses.items()
        if RESTRICTIVE.search(text) or not PERMISSIVE.search(text)
    }
    assert not offenders


def test_notice_names_every_other_license_that_extras_install():
    expected = {
        (name, extra)
        for extra in extras()
        for name, package in installed_by(extra).items()
        if RESTRICTIVE.search(package.license)
    }
    noted = {
        (name, extra)
        for name, listed in re.findall(r"^\* (\S+) \(([^)]+)\)", NOTICE.read_text(), re.MULTILINE)
        for extra in listed.split(", ")
    }
    assert noted == expected

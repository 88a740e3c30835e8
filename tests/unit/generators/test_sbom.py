"""The bill of materials is valid CycloneDX, complete, and reproducible; checksums are signed."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from generators.packages import extras, installed_by
from generators.sbom import bill_of_materials

ROOT = Path(__file__).parents[3]
BUILT_S = 1_800_000_000


@pytest.fixture(scope="module")
def bill():
    return json.loads(bill_of_materials(BUILT_S))


def test_bill_is_valid_and_reproducible(bill):
    again = bill_of_materials(BUILT_S)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(again) is None
    assert json.loads(again) == bill
    assert bill["metadata"]["component"]["name"] == "kafscale"


def test_bill_has_every_package_with_its_license_and_hashes(bill):
    packages = installed_by(*extras())
    found = {each["name"]: each for each in bill["components"]}
    assert found.keys() | {"kafscale"} == packages.keys()
    assert {
        name for name, each in found.items() if not (each.get("licenses") and each["hashes"])
    } == set()
    assert found["obstore"]["scope"] == "required"
    assert found["pyspark"]["properties"] == [{"name": "kafscale:extra", "value": "spark"}]
    graph = {each["ref"]: each.get("dependsOn", []) for each in bill["dependencies"]}
    assert (
        found["numpy"]["bom-ref"]
        in graph[found["pyarrow"]["bom-ref"]] + graph[found["numba"]["bom-ref"]]
    )


def test_checksums_are_signed(tmp_path):
    run(tmp_path, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key")
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "kafscale.whl").write_text("wheel")
    key, dist = tmp_path / "key", tmp_path / "dist"
    run(ROOT, "make", "--silent", "checksums", f"DIST={dist}", f"SIGNING_KEY={key}")
    signer = f"releases@example.com {(tmp_path / 'key.pub').read_text()}"
    (tmp_path / "signers").write_text(signer)
    verify = (
        "ssh-keygen -q -Y verify -f ../signers -I releases@example.com -n file -s SHA256SUMS.sig"
    )
    check = f"{verify} < SHA256SUMS && sha256sum --quiet --check SHA256SUMS"
    run(dist, "sh", "-c", check)
    (dist / "kafscale.whl").write_text("another")
    with pytest.raises(subprocess.CalledProcessError):
        run(dist, "sh", "-c", check)


def run(directory, program, *arguments):
    command = [shutil.which(program), *arguments]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)  # noqa: S603

"""`kafscale operator crds` prints the committed CRDs."""

import yaml

from unit.deploy.chart import CONFIG


def test_crds_prints_both_definitions(kafscale):
    result = kafscale("operator", "crds")
    files = sorted((CONFIG / "crd" / "bases").iterdir())
    assert result.exit_code == 0
    printed = [each for each in yaml.safe_load_all(result.stdout) if each]
    assert printed == [yaml.safe_load(file.read_text()) for file in files]

"""Fixtures for tests of manifests: golden files."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from kafscale.operator.kube.api import Manifest

GOLDEN = Path(__file__).parent / "golden"


class _Plain(yaml.SafeDumper):
    """YAML without aliases."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Plain.add_representer(str, _text)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, list[Manifest]], None]:
    """Compares manifests with a golden file, or writes it with `--rewrite-golden`."""

    def compare(name: str, manifests: list[Manifest]) -> None:
        file = GOLDEN / f"{name}.yaml"
        if request.config.getoption("--rewrite-golden"):
            text = yaml.dump_all(manifests, Dumper=_Plain, sort_keys=False, width=100)
            file.write_text(text, encoding="utf-8")
        assert manifests == list(yaml.safe_load_all(file.read_text(encoding="utf-8")))

    return compare

"""What config/rbac grants to the operator.

granted("operator_role.yaml")   {("", "secrets", "get"), ...}
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

RBAC = Path(__file__).parents[2] / "config" / "rbac"
OPERATOR_FILES = ("operator_role.yaml", "node_role.yaml", "leader_election_role.yaml")


class Permission(NamedTuple):
    """A verb on a resource, or on a subresource `a/b`, of an API group."""

    group: str
    resource: str
    verb: str


def granted(*files: str) -> set[Permission]:
    """The permissions in these files."""
    return {each for file in files for each in _read(file)}


def _read(file: str) -> Iterator[Permission]:
    for document in yaml.safe_load_all((RBAC / file).read_text()):
        for rule in document.get("rules", ()):
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    yield from (Permission(group, resource, verb) for verb in rule["verbs"])

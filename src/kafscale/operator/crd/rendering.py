"""Definitions and schemas as files: what `make generate` writes and the repository keeps."""

import json
from typing import Final

import yaml

from kafscale.operator.crd.definitions import RESOURCES, definitions
from kafscale.operator.crd.editing import json_schema

_HEADER: Final = """\
# Written by `make generate` from the classes in src/kafscale/operator/spec; edit those instead.
---
"""


def rendered() -> dict[str, str]:
    """The text of each definition's file, by its name."""
    return {
        f"{each['spec']['group']}_{each['spec']['names']['plural']}.yaml": _HEADER
        + yaml.safe_dump(each, sort_keys=False, width=100, allow_unicode=True)
        for each in definitions()
    }


def rendered_schemas() -> dict[str, str]:
    """The same of the schemas for editors."""
    return {
        f"{resource.kind.kind.lower()}.json": json.dumps(
            json_schema(resource), indent=2, ensure_ascii=False
        )
        + "\n"
        for resource in RESOURCES
    }

"""The definitions as files: what `make generate` writes and the repository keeps."""

from typing import Final

import yaml

from kafscale.operator.crd.definitions import definitions

_HEADER: Final = """\
# Written by `make generate` from the classes in src/kafscale/operator/spec; edit those instead.
---
"""


def rendered() -> dict[str, str]:
    """The text of each file, by its name."""
    return {
        f"{each['spec']['group']}_{each['spec']['names']['plural']}.yaml": _HEADER
        + yaml.safe_dump(each, sort_keys=False, width=100, allow_unicode=True)
        for each in definitions()
    }

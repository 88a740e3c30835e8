"""How a setting is declared, and how all declared settings of a group are found again.

The law: everything known about a setting (its names, kind, default and whether it is secret) is
said once, at its field; file keys, variables, checks, tables and documentation are derived from
there. A group is a frozen dataclass whose fields are settings or further groups. Reading values is
left to `loading`.
"""

import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from kafscale.config.types import SettingType, StringList, Value

MASK = "********"


@dataclass(frozen=True)
class Setting:
    """One setting, with everything that its field and its place say about it."""

    path: str
    """The key in the file, with its groups: `storage.segmentBytes`."""
    variables: tuple[str, ...]
    """The environment variables that set it; the first one given wins."""
    attribute: str
    """Where its value is in a `Config`: `storage.segment_bytes`."""
    group: type
    """The group that declares it."""
    type: SettingType[Any]
    default: object
    secret: bool

    def read(self, raw: str | Sequence[str]) -> object:
        """The value of what was written: a text, or a list where the setting takes one."""
        if isinstance(raw, str):
            return self.type.read(raw)
        if isinstance(self.type, StringList):
            return self.type.read_list(raw)
        raise ValueError("is a list")

    def value(self, config: object) -> object:
        return attrgetter(self.attribute)(config)

    def show(self, value: object) -> str:
        """`value` for people to read; a secret only shows that it is there."""
        return MASK if self.secret and value else self.type.show(value)

    def export(self, value: object) -> object:
        """`value` for JSON, YAML and logs; a secret only shows that it is there."""
        return MASK if self.secret and value else self.type.export(value)


@dataclass(frozen=True)
class _Declared:
    type: SettingType[Any]
    key: str
    variables: tuple[str, ...]
    secret: bool


def setting(
    default: Value,
    kind: SettingType[Value],
    *,
    key: str = "",
    variables: tuple[str, ...] = (),
    secret: bool = False,
) -> Value:
    """A field of a group; without `key` and `variables`, both follow from the field's name."""
    declared = _Declared(kind, key, variables, secret)
    return dataclasses.field(default=default, repr=not secret, metadata={"setting": declared})


def settings_of(group: type, path: str = "", attribute: str = "") -> Iterator[Setting]:
    """Every setting of `group` and the groups inside it, in the order of declaration."""
    for field in dataclasses.fields(group):
        declared: _Declared | None = field.metadata.get("setting")
        field_path = path + ((declared and declared.key) or _camel_case(field.name))
        if declared:
            yield Setting(
                path=field_path,
                variables=declared.variables or (_variable(field_path),),
                attribute=attribute + field.name,
                group=group,
                type=declared.type,
                default=field.default,
                secret=declared.secret,
            )
        elif inner := inner_group(field):
            yield from settings_of(inner, f"{field_path}.", f"{attribute}{field.name}.")


def inner_group(field: dataclasses.Field[Any]) -> type | None:
    """The group that `field` holds, if it holds one."""
    if isinstance(field.type, type) and dataclasses.is_dataclass(field.type):
        return field.type
    return None


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _variable(path: str) -> str:
    """The variable derived from a path: `etcd.tls.certFile` is `KAFSCALE_ETCD_TLS_CERT_FILE`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", path.replace(".", "_"))
    return f"KAFSCALE_{words.upper()}"

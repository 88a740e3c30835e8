"""Declares settings as dataclass fields, collects them, and holds the raw values of sources.

Everything about a setting (names, type, default, whether it is secret) is declared at its field;
file keys, variables, checks and documentation are derived from it. A group is a frozen dataclass
whose fields are settings or nested groups. An error message about a value names the setting, its
origin, what is wrong and what is valid; it never contains a secret.
"""

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from operator import attrgetter
from typing import Any

from kafscale.config.types import SettingType, StringList, Value

MASK = "********"


@dataclass(frozen=True)
class Setting:
    """One setting with its names, type and default."""

    path: str
    """The key in the file, with its groups: `storage.segmentBytes`."""
    variables: tuple[str, ...]
    """The environment variables that set it; the first that is given wins."""
    attribute: str
    """The attribute of a `Config`: `storage.segment_bytes`."""
    group: type
    """The group that declares it."""
    type: SettingType[Any]
    default: object
    secret: bool

    @property
    def description(self) -> str:
        """The docstring of its field, on one line."""
        return descriptions(self.group)[self.attribute.rpartition(".")[2]]

    def read(self, raw: str | Sequence[str]) -> object:
        """Parse a raw value: text, or a list if the setting accepts one."""
        if isinstance(raw, str):
            return self.type.read(raw)
        if isinstance(self.type, StringList):
            return self.type.read_list(raw)
        raise ValueError("is a list")

    def value(self, config: object) -> object:
        return attrgetter(self.attribute)(config)

    def show(self, value: object) -> str:
        """Format a value for people; a secret is masked."""
        return MASK if self.secret and value else self.type.show(value)

    def export(self, value: object) -> object:
        """Convert a value for JSON, YAML and logs; a secret is masked."""
        return MASK if self.secret and value else self.type.export(value)


@dataclass(frozen=True)
class RawValue:
    """One value as it was written, and where."""

    setting: Setting
    raw: str | Sequence[str]
    origin: str

    def problem(self, reason: object) -> str:
        """The error message for this value."""
        path, origin = self.setting.path, self.origin
        return f"{path} ({origin}): {self._quoted()} {reason}; expected {self.setting.type.takes}"

    def _quoted(self) -> str:
        if self.setting.secret:
            return MASK
        raw = self.raw if isinstance(self.raw, str) else ", ".join(self.raw)
        # A URL may contain a password even if none is expected.
        return '"' + re.sub(r"//[^/@]*@", f"//{MASK}@", raw) + '"'


@dataclass
class SourceValues:
    """The values of one source, in ascending precedence, and the problems found."""

    values: list[RawValue] = dataclasses.field(default_factory=list)
    problems: list[str] = dataclasses.field(default_factory=list)


def suggestion(name: str, known: Iterable[str], prefix: str = "") -> str:
    """Suggest a known name for an unknown one; `prefix` is common to all names."""
    names = [word.removeprefix(prefix) for word in known]
    unknown = name.removeprefix(prefix)
    # A name with an extra prefix is closest to the known name at its end.
    suffixes = [word for word in names if unknown.endswith(f"_{word}")]
    if nearest := suffixes or get_close_matches(unknown, names, n=1):
        return f"did you mean {prefix}{nearest[0]}?"
    return "`kafscale config show` lists all settings"


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
    """Declare a field of a group; `key` and `variables` default to names derived from the field."""
    declared = _Declared(kind, key, variables, secret)
    return dataclasses.field(default=default, repr=not secret, metadata={"setting": declared})


def settings_of(group: type, path: str = "", attribute: str = "") -> Iterator[Setting]:
    """All settings of `group` and its nested groups, in the order of declaration."""
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
    """The group that `field` holds, or None."""
    if isinstance(field.type, type) and dataclasses.is_dataclass(field.type):
        return field.type
    return None


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _variable(path: str) -> str:
    """The variable of a path: `etcd.tls.certFile` is `KAFSCALE_ETCD_TLS_CERT_FILE`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", path.replace(".", "_"))
    return f"KAFSCALE_{words.upper()}"


@cache
def descriptions(group: type) -> dict[str, str]:
    """The docstring of each field of a group, on one line."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(group))).body[0]
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(description))),
            ):
                found[name] = " ".join(description.split())
    return found

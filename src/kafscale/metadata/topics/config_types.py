"""The types of Kafka's config values: parsing and description as in Kafka.

`parse` returns the value as it is stored, or raises a `ValueError` that says what is valid. These
types are for values that clients send in CreateTopics and AlterConfigs; the types of Kafscale's own
settings are in `config.types`.
"""

import enum
import math
import re
from dataclasses import dataclass
from typing import Final, Protocol

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


class ConfigType(enum.IntEnum):
    """The type of a config value in DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(enum.IntEnum):
    """The source of a config value in DescribeConfigs."""

    TOPIC = 1
    STATIC_BROKER = 4
    DEFAULT = 5
    CLIENT_METRICS = 7


class ValueType(Protocol):
    """Parses the values of a config."""

    @property
    def type(self) -> ConfigType: ...

    def parse(self, text: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer within inclusive bounds."""

    minimum: int
    maximum: int = LONG_MAX

    @property
    def type(self) -> ConfigType:
        return ConfigType.INT if self.maximum <= INT_MAX else ConfigType.LONG

    def parse(self, text: str) -> str:
        if not _INTEGER.fullmatch(text.strip()):
            raise ValueError(f"Not a number of type {self.type.name}")
        value = int(text)
        if value < self.minimum:
            raise ValueError(f"Value must be at least {self.minimum}")
        if value > self.maximum:
            raise ValueError(f"Value must be at most {self.maximum}")
        return str(value)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A number from 0 to 1."""

    type = ConfigType.DOUBLE

    def parse(self, text: str) -> str:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value <= 1:
            raise ValueError("Value must be a number from 0 to 1")
        return text.strip()


@dataclass(frozen=True, slots=True)
class Boolean:
    """`true` or `false`."""

    type = ConfigType.BOOLEAN

    def parse(self, text: str) -> str:
        value = text.strip().lower()
        if value not in {"true", "false"}:
            raise ValueError("Expected value to be either true or false")
        return value


@dataclass(frozen=True, slots=True)
class Enum:
    """One of several strings."""

    choices: tuple[str, ...]
    type = ConfigType.STRING

    def parse(self, text: str) -> str:
        value = text.strip()
        if value not in self.choices:
            raise ValueError(f"String must be one of: {', '.join(self.choices)}")
        return value


@dataclass(frozen=True, slots=True)
class StringList:
    """A comma-separated list of strings; the only type that supports append."""

    type = ConfigType.LIST

    def parse(self, text: str) -> str:
        return ",".join(split_list(text))


def split_list(text: str) -> list[str]:
    """Split a comma-separated list."""
    return [word for word in (part.strip() for part in text.split(",")) if word]

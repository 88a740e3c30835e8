"""The kinds of value that Kafka's configs take, read and described as Kafka does.

The law: `read` returns the value as it is stored, or raises a `ValueError` that says what would
have been right. The kinds of our own settings, which people write in files, are `config.kinds`;
these are what clients send in CreateTopics and AlterConfigs.
"""

import enum
import math
import re
from dataclasses import dataclass
from typing import Final, Protocol

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1

_WHOLE: Final = re.compile(r"[+-]?[0-9]+")


class ConfigType(enum.IntEnum):
    """What DescribeConfigs calls a kind of value."""

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
    """Where a value comes from, as DescribeConfigs numbers it."""

    TOPIC = 1
    STATIC_BROKER = 4
    DEFAULT = 5


class ValueType(Protocol):
    """What a config may be."""

    @property
    def type(self) -> ConfigType: ...

    def parse(self, text: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number between two bounds, which are allowed."""

    minimum: int
    maximum: int = LONG_MAX

    @property
    def type(self) -> ConfigType:
        return ConfigType.INT if self.maximum <= INT_MAX else ConfigType.LONG

    def parse(self, text: str) -> str:
        if not _WHOLE.fullmatch(text.strip()):
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
    """True or false."""

    type = ConfigType.BOOLEAN

    def parse(self, text: str) -> str:
        value = text.strip().lower()
        if value not in {"true", "false"}:
            raise ValueError("Expected value to be either true or false")
        return value


@dataclass(frozen=True, slots=True)
class Enum:
    """One of a few words."""

    choices: tuple[str, ...]
    type = ConfigType.STRING

    def parse(self, text: str) -> str:
        value = text.strip()
        if value not in self.choices:
            raise ValueError(f"String must be one of: {', '.join(self.choices)}")
        return value


@dataclass(frozen=True, slots=True)
class StringList:
    """A list of words, separated by commas; the only kind that can be appended to."""

    type = ConfigType.LIST

    def parse(self, text: str) -> str:
        return ",".join(split_list(text))


def split_list(text: str) -> list[str]:
    """The words of a list."""
    return [word for word in (part.strip() for part in text.split(",")) if word]

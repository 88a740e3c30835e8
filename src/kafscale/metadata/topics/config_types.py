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


class Kind(Protocol):
    """What a config may be."""

    @property
    def type(self) -> ConfigType: ...

    def read(self, text: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number between two bounds, which are allowed."""

    least: int
    most: int = LONG_MAX

    @property
    def type(self) -> ConfigType:
        return ConfigType.INT if self.most <= INT_MAX else ConfigType.LONG

    def read(self, text: str) -> str:
        if not _WHOLE.fullmatch(text.strip()):
            raise ValueError(f"Not a number of type {self.type.name}")
        value = int(text)
        if value < self.least:
            raise ValueError(f"Value must be at least {self.least}")
        if value > self.most:
            raise ValueError(f"Value must be at most {self.most}")
        return str(value)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A number from 0 to 1."""

    type = ConfigType.DOUBLE

    def read(self, text: str) -> str:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value <= 1:
            raise ValueError("Value must be a number from 0 to 1")
        return text.strip()


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    type = ConfigType.BOOLEAN

    def read(self, text: str) -> str:
        value = text.strip().lower()
        if value not in {"true", "false"}:
            raise ValueError("Expected value to be either true or false")
        return value


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]
    type = ConfigType.STRING

    def read(self, text: str) -> str:
        value = text.strip()
        if value not in self.words:
            raise ValueError(f"String must be one of: {', '.join(self.words)}")
        return value


@dataclass(frozen=True, slots=True)
class Words:
    """A list of words, separated by commas; the only kind that can be appended to."""

    type = ConfigType.LIST

    def read(self, text: str) -> str:
        return ",".join(split(text))


def split(text: str) -> list[str]:
    """The words of a list."""
    return [word for word in (part.strip() for part in text.split(",")) if word]

"""The types of Kafka's config values: parsing and description as in Kafka.

`parse` returns the value as it is stored, or raises a `ValueError` in the words of Kafka. These
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
LONG_MIN: Final = -(2**63)

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,30}")
_REPLICA: Final = re.compile(r"([0-9]+:[0-9]+)?")


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
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class InvalidValueError(ValueError):
    """A value that is not allowed.

    >>> str(InvalidValueError("x", "Not a number of type INT"))
    'Not a number of type INT'
    """

    def __init__(self, value: object, reason: str) -> None:
        super().__init__(reason)
        self.value = str(value)
        """The value as Kafka's errors show it."""


class ValueType(Protocol):
    """Parses the values of a config."""

    @property
    def type(self) -> ConfigType: ...

    def parse(self, text: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer of 32 or 64 bits, within inclusive bounds."""

    minimum: int
    maximum: int = LONG_MAX
    extra: int | None = None
    """A value outside of the bounds that is allowed as well."""

    @property
    def type(self) -> ConfigType:
        return ConfigType.INT if self.maximum <= INT_MAX else ConfigType.LONG

    def parse(self, text: str) -> str:
        size = INT_MAX if self.type is ConfigType.INT else LONG_MAX
        if not _INTEGER.fullmatch(text.strip()) or not -size - 1 <= int(text) <= size:
            raise InvalidValueError(text, f"Not a number of type {self.type.name}")
        value = int(text)
        if value == self.extra or self.minimum <= value <= self.maximum:
            return str(value)
        raise InvalidValueError(value, self._reason(value))

    def _reason(self, value: int) -> str:
        if self.extra is not None:
            bounds = f"between {self.minimum} and {self.maximum}"
            return f"Value must be {bounds} or equal to {self.extra}"
        if value < self.minimum:
            return f"Value must be at least {self.minimum}"
        return f"Value must be no more than {self.maximum}"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A number from 0 to 1."""

    type = ConfigType.DOUBLE

    def parse(self, text: str) -> str:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise InvalidValueError(text, "Not a number of type DOUBLE")
        if value < 0:
            raise InvalidValueError(value, "Value must be at least 0")
        if value > 1:
            raise InvalidValueError(value, "Value must be no more than 1")
        return str(value)


@dataclass(frozen=True, slots=True)
class Boolean:
    """`true` or `false`."""

    type = ConfigType.BOOLEAN

    def parse(self, text: str) -> str:
        value = text.strip().lower()
        if value not in {"true", "false"}:
            raise InvalidValueError(text, "Expected value to be either true or false")
        return value


@dataclass(frozen=True, slots=True)
class Enum:
    """One of several strings."""

    choices: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    """Further strings that are allowed, which Kafka does not know."""
    type = ConfigType.STRING

    def parse(self, text: str) -> str:
        value = text.strip()
        if value not in self.choices and value not in self.aliases:
            raise InvalidValueError(value, f"String must be one of: {', '.join(self.choices)}")
        return value


@dataclass(frozen=True, slots=True)
class StringList:
    """A comma-separated list of strings, possibly empty; lists support append and subtract."""

    choices: tuple[str, ...] = ()
    """What its items may be; anything if empty."""
    type = ConfigType.LIST

    def parse(self, text: str) -> str:
        items = [item.strip() for item in text.split(",")] if text.strip() else []
        for item in items:
            if self.choices and item not in self.choices:
                raise InvalidValueError(item, f"String must be one of: {', '.join(self.choices)}")
        return ",".join(items)


@dataclass(frozen=True, slots=True)
class ReplicaList:
    """The replicas of a topic whose replication is throttled: `partition:broker,...`, or `*`."""

    name: str
    type = ConfigType.LIST

    def parse(self, text: str) -> str:
        value = StringList().parse(text)
        items = value.split(",")
        if value != "*" and not all(_REPLICA.fullmatch(item) for item in items):
            raise InvalidValueError(
                f"[{', '.join(items)}]",
                f"{self.name} must be the literal '*' or a list of replicas in the following"
                " format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
            )
        return value


def split_list(text: str) -> list[str]:
    """Split a comma-separated list."""
    return [word for word in (part.strip() for part in text.split(",")) if word]

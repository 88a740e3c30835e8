"""The types of settings: how their values are parsed, shown and described.

A value has the same syntax in the file and in the environment. An invalid value raises a
`ValueError` whose message completes the sentence "this value ..."; `takes` describes valid values.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, Literal, Protocol, TypeVar

from kafscale.net.address import is_server
from kafscale.text import units

Value = TypeVar("Value")
Measure = TypeVar("Measure", int, float)


class SettingType(Protocol[Value]):
    """Parses and formats the values of a setting; `read(show(value))` returns the value."""

    @property
    def takes(self) -> str:
        """A description of valid values, after "expected"."""

    def read(self, text: str) -> Value:
        """Parse a value; raises `ValueError`."""

    def show(self, value: Value) -> str:
        """Format a value for people."""

    def export(self, value: Value) -> object:
        """Convert a value for JSON and YAML."""


class _Plain(Generic[Value]):
    """For types whose values need no conversion."""

    def show(self, value: Value) -> str:
        return str(value)

    def export(self, value: Value) -> object:
        return value


@dataclass(frozen=True)
class Text(_Plain[str]):
    """Text that matches a pattern; empty means unset, if `optional`."""

    takes: str = "text on one line, without white space at its ends"
    pattern: str = r"\S|\S.*\S"
    optional: bool = False

    def read(self, text: str) -> str:
        if not text and self.optional:
            return text
        if not text:
            raise ValueError("is empty")
        if not re.fullmatch(self.pattern, text):
            raise ValueError("has the wrong format")
        return text


@dataclass(frozen=True)
class Server(Text):
    """The URL, or host and port, of a server."""

    def read(self, text: str) -> str:
        server = super().read(text)
        # The clients of some servers end the process for a host or port that cannot exist.
        if server and not is_server(server.partition("://")[2] or server):
            raise ValueError("has an invalid host or port")
        return server


@dataclass(frozen=True)
class Choice(_Plain[str]):
    """One of several values, case-insensitive."""

    values: tuple[str, ...]

    @property
    def takes(self) -> str:
        return f"one of {', '.join(self.values)}"

    def read(self, text: str) -> str:
        for value in self.values:
            if value.lower() == text.strip().lower():
                return value
        raise ValueError("is not one of them")


@dataclass(frozen=True)
class Boolean(_Plain[bool]):
    """True or false."""

    takes: str = "true or false"

    def read(self, text: str) -> bool:
        word = text.strip().lower()
        if word in {"true", "yes", "1"}:
            return True
        if word in {"false", "no", "0"}:
            return False
        raise ValueError("is neither true nor false")

    def show(self, value: bool) -> str:
        return "true" if value else "false"


@dataclass(frozen=True)
class OptionalBoolean(_Plain[bool | None]):
    """True, false, or None, which is written as empty text."""

    takes: str = "true, false, or nothing"

    def read(self, text: str) -> bool | None:
        return Boolean().read(text) if text.strip() else None

    def show(self, value: bool | None) -> str:
        return "" if value is None else Boolean().show(value)


@dataclass(frozen=True)
class Integer(_Plain[int]):
    """An integer within bounds."""

    minimum: int
    maximum: int

    @property
    def takes(self) -> str:
        return f"a whole number from {self.minimum} to {self.maximum}"

    def read(self, text: str) -> int:
        if not re.fullmatch(r"-?\d{1,18}", text.strip(), re.ASCII):
            raise ValueError("is not a whole number")
        return _bounded(int(text), self.minimum, self.maximum, str)


@dataclass(frozen=True)
class OptionalInteger(_Plain[int | None]):
    """An integer, or None, which is written as empty text."""

    number: Integer

    @property
    def takes(self) -> str:
        return f"{self.number.takes}, or nothing"

    def read(self, text: str) -> int | None:
        return self.number.read(text) if text.strip() else None

    def show(self, value: int | None) -> str:
        return "" if value is None else str(value)


@dataclass(frozen=True)
class BrokerId(OptionalInteger):
    """A broker id, as a number or as a name that ends with it: `broker-2` is 2."""

    number: Integer = Integer(0, 2**31 - 1)

    @property
    def takes(self) -> str:
        return f"{self.number.takes}, or a name that ends with it, such as broker-2, or nothing"

    def read(self, text: str) -> int | None:
        named = re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*-(\d+)", text.strip(), re.ASCII)
        return super().read(named[1] if named else text)


@dataclass(frozen=True)
class Float(_Plain[float]):
    """A decimal number within bounds, by default a fraction from 0 to 1."""

    minimum: float = 0.0
    maximum: float = 1.0

    @property
    def takes(self) -> str:
        return f"a number from {self.minimum:g} to {self.maximum:g}, such as 0.2"

    def read(self, text: str) -> float:
        if not re.fullmatch(r"\d{1,9}(\.\d{1,18})?", text.strip(), re.ASCII):
            raise ValueError("is not a number")
        return _bounded(float(text), self.minimum, self.maximum, "{:g}".format)


@dataclass(frozen=True)
class Size(_Plain[int]):
    """A number of bytes within bounds."""

    minimum: int
    maximum: int

    @property
    def takes(self) -> str:
        low, high = self.show(self.minimum), self.show(self.maximum)
        return f"a size from {low} to {high}, such as 104857600, 100Mi or 100MB"

    def read(self, text: str) -> int:
        return _bounded(units.parse_size(text), self.minimum, self.maximum, self.show)

    def show(self, value: int) -> str:
        return units.show_size(value)


@dataclass(frozen=True)
class Duration:
    """A duration within bounds, in whole milliseconds or seconds.

    A setting whose name ends in its unit also accepts a plain number. Without a unit in the name a
    plain number would be ambiguous, and is rejected.
    """

    minimum: int
    maximum: int
    unit: Literal["ms", "s"] = "ms"
    unit_in_name: bool = True

    @property
    def takes(self) -> str:
        low, high = self.show(self.minimum), self.show(self.maximum)
        if not self.unit_in_name:
            return f"a duration with its unit, from {low} to {high}, such as 500ms, 30s or 5m"
        unit = "milliseconds" if self.unit == "ms" else "seconds"
        return f"a number of {unit} or a duration with its unit, from {low} to {high}"

    def read(self, text: str) -> int:
        bare_unit = self.unit if self.unit_in_name else None
        value, remainder = divmod(units.parse_duration(text, bare_unit), self._unit_ms)
        if remainder:
            raise ValueError("is not a whole number of seconds")
        return _bounded(value, self.minimum, self.maximum, self.show)

    def show(self, value: int) -> str:
        return units.show_duration(value * self._unit_ms)

    def export(self, value: int) -> object:
        return value if self.unit_in_name else self.show(value)

    @property
    def _unit_ms(self) -> int:
        return 1 if self.unit == "ms" else units.SECOND_MS


@dataclass(frozen=True)
class StringList:
    """A list of texts: a list in the file, comma-separated in the environment."""

    each: Text
    required: bool = False
    """Whether the list must not be empty."""

    @property
    def takes(self) -> str:
        return f"a list (separated by commas in the environment), each entry {self.each.takes}"

    def read(self, text: str) -> tuple[str, ...]:
        return self.read_list(text.split(",") if text.strip() else ())

    def read_list(self, items: Sequence[str]) -> tuple[str, ...]:
        if self.required and not items:
            raise ValueError("is empty")
        return tuple(self._read_item(item.strip()) for item in items)

    def _read_item(self, item: str) -> str:
        try:
            return self.each.read(item)
        except ValueError as error:
            raise ValueError(f"has an entry that {error}") from None

    def show(self, value: tuple[str, ...]) -> str:
        return ",".join(value)

    def export(self, value: tuple[str, ...]) -> object:
        return list(value)


def _bounded(
    value: Measure, minimum: Measure, maximum: Measure, show: Callable[[Measure], str]
) -> Measure:
    if value < minimum:
        raise ValueError(f"is below the minimum of {show(minimum)}")
    if value > maximum:
        raise ValueError(f"is above the maximum of {show(maximum)}")
    return value


HOST: Final = Text("a host name or an address", r"[0-9A-Za-z._:%-]+")
HOST_OR_EMPTY: Final = replace(HOST, optional=True)
PORT: Final = Integer(0, 65535)
"""Types that several sections use."""

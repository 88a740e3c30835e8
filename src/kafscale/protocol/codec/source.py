"""Builds the Python source of one generated function: lines, names and constants.

This is the only use of `exec`, on text that is generated from Kafscale's own declarations. The text
is registered with `linecache`, so that tracebacks and debuggers show it.
"""

import linecache
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

RESERVED = (
    "view",
    "position",
    "end",
    "stop",
    "at",
    "message",
    "error",
    "write",
    "out",
    "parts",
    "len",
    "list",
    "range",
    "sum",
    "map",
)
"""Names that generated code uses itself, and that fields must not use as variables."""


class Source:
    """The source of one function."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = dict(namespace)
        self._lines: list[str] = []
        self._depth = 0
        self._names = dict.fromkeys(RESERVED, 1)

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self._depth += 1
        length = len(self._lines)
        yield
        if len(self._lines) == length:
            self.line("pass")
        self._depth -= 1

    def name(self, stem: str) -> str:
        """An unused variable name: `topic`, then `topic_2`, `topic_3`."""
        taken = self._names[stem] = self._names.get(stem, 0) + 1
        return stem if taken == 1 else f"{stem}_{taken}"

    def constant(self, name: str, value: object) -> str:
        """Add a constant to the namespace of the function."""
        assert self.namespace.setdefault(name, value) == value, f"{name} has two meanings"
        return name

    def packer(self, formats: str) -> str:
        return self.constant("pack_" + _legible(formats), _struct(formats).pack)

    def unpacker(self, formats: str) -> str:
        name = "unpack_" + _legible(formats)
        return self.constant(name, _struct(formats).unpack_from)

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def compile(self, function: str, file: str) -> Callable[..., Any]:
        """Execute the source, which must define `function`."""
        text = self.text
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), self.namespace)  # noqa: S102 - see the module docstring
        result: Callable[..., Any] = self.namespace[function]
        return result


@cache
def _struct(formats: str) -> struct.Struct:
    return struct.Struct(">" + formats)


def _legible(formats: str) -> str:
    return formats.replace("?", "t")  # Format characters are valid in identifiers except "?".

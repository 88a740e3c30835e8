"""Declares tools, and what all of them share: bounded results and error messages.

Tools are annotated as read-only or destructive. No result is longer than an assistant can read; it
says how much was left out.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from kafscale.client.errors import BrokerResponseError
from kafscale.errors import KafscaleError

Data = dict[str, Any]

SECONDS_MAX: Final = 60
ITEMS_MAX: Final = 200
"""The maximum length of a list, unless the caller requests fewer."""


@dataclass(frozen=True)
class Tool:
    """A tool; the docstring of its function is its description."""

    call: Callable[..., Awaitable[Data]]
    title: str
    is_write: bool = False
    is_destructive: bool = False

    @property
    def name(self) -> str:
        return str(getattr(self.call, "__name__"))  # noqa: B009 - callables need not have one.

    def add_to(self, server: MCPServer) -> None:
        """Register the tool with a server."""
        annotations = ToolAnnotations(
            title=self.title,
            read_only_hint=not self.is_write,
            destructive_hint=self.is_destructive,
            idempotent_hint=not self.is_write,
            open_world_hint=False,
        )
        server.add_tool(
            with_error_handling(self.call),
            name=self.name,
            title=self.title,
            annotations=annotations,
        )


def with_error_handling(call: Callable[..., Awaitable[Data]]) -> Callable[..., Awaitable[Data]]:
    """Add a time limit, and turn errors into tool errors."""

    @functools.wraps(call)
    async def wrapper(*arguments: Any, **named: Any) -> Data:
        try:
            async with asyncio.timeout(SECONDS_MAX):
                return await call(*arguments, **named)
        except TimeoutError:
            raise ToolError(f"the cluster did not respond within {SECONDS_MAX} seconds") from None
        except BrokerResponseError as error:
            raise ToolError(error.message_without_hint) from None
        except KafscaleError as error:
            raise ToolError(str(error)) from None

    return wrapper


def bounded(name: str, items: Sequence[Any], limit: int = ITEMS_MAX) -> Data:
    """A list up to its limit, and how much there is in total.

    >>> bounded("topics", ["a", "b", "c"], limit=2)
    {'topics': ['a', 'b'], 'total': 3, 'leftOut': 1}
    """
    shown = list(items[: max(0, min(limit, ITEMS_MAX))])
    return {name: shown, "total": len(items), "leftOut": len(items) - len(shown)}


def to_json(struct: msgspec.Struct, fields: Sequence[str] | None = None) -> Data:
    """The fields of a struct as JSON values, with names in camel case."""
    names = struct.__struct_fields__ if fields is None else fields
    return {_camel(name): msgspec.to_builtins(getattr(struct, name)) for name in names}


def _camel(name: str) -> str:
    """A name in camel case.

    >>> _camel("store_health")
    'storeHealth'
    """
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))

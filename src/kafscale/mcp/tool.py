"""How a tool is declared, and what all tools keep: bounded answers, and errors as sentences.

The law: a tool that only looks says so, one that destroys says so as well, and none answers more
than an assistant can read: what was left out is said.
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

from kafscale.client.errors import AnsweredError
from kafscale.errors import KafscaleError

Data = dict[str, Any]

SECONDS_MAX: Final = 60
ITEMS_MAX: Final = 200
"""How many things a list has, unless fewer are asked for."""


@dataclass(frozen=True)
class Tool:
    """One thing that an assistant can ask for; its docstring says what for."""

    call: Callable[..., Awaitable[Data]]
    title: str
    changes: bool = False
    destroys: bool = False

    @property
    def name(self) -> str:
        return str(getattr(self.call, "__name__"))  # noqa: B009 - callables need not have one.

    def add_to(self, server: MCPServer) -> None:
        """Offer it."""
        annotations = ToolAnnotations(
            title=self.title,
            read_only_hint=not self.changes,
            destructive_hint=self.destroys,
            idempotent_hint=not self.changes,
            open_world_hint=False,
        )
        server.add_tool(
            guarded(self.call), name=self.name, title=self.title, annotations=annotations
        )


def guarded(call: Callable[..., Awaitable[Data]]) -> Callable[..., Awaitable[Data]]:
    """The same, within a time limit, and with errors of ours as words for an assistant."""

    @functools.wraps(call)
    async def called(*arguments: Any, **named: Any) -> Data:
        try:
            async with asyncio.timeout(SECONDS_MAX):
                return await call(*arguments, **named)
        except TimeoutError:
            raise ToolError(f"the cluster did not answer within {SECONDS_MAX} seconds") from None
        except AnsweredError as error:
            raise ToolError(error.sentence) from None
        except KafscaleError as error:
            raise ToolError(str(error)) from None

    return called


def bounded(name: str, items: Sequence[Any], limit: int = ITEMS_MAX) -> Data:
    """A list as far as it may go, and how much there is.

    >>> bounded("topics", ["a", "b", "c"], limit=2)
    {'topics': ['a', 'b'], 'total': 3, 'leftOut': 1}
    """
    shown = list(items[: max(0, min(limit, ITEMS_MAX))])
    return {name: shown, "total": len(items), "leftOut": len(items) - len(shown)}


def told(struct: msgspec.Struct, *, without: Sequence[str] = ()) -> Data:
    """A struct as plain data, with its fields named as JSON names them."""
    fields = [name for name in struct.__struct_fields__ if name not in without]
    return {_camel(name): msgspec.to_builtins(getattr(struct, name)) for name in fields}


def _camel(name: str) -> str:
    """A name as JSON has it.

    >>> _camel("store_health")
    'storeHealth'
    """
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))

"""A client of the MCP server `kafscale mcp`.

    with McpClient(broker) as client:
        client.call("list_topics")["topics"]

Calls block. The protocol runs on an event loop in a thread, because the client belongs to the task
that opened it.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self

from mcp import Client, StdioServerParameters, stdio_client

from services.broker import BrokerProcess

PROGRAM = Path(sys.executable).with_name("kafscale")
START_S_MAX = 60
RESPONSE_S_MAX = 60

Task = Callable[[Client], Awaitable[Any]]


def environment(broker: BrokerProcess, **settings: str) -> dict[str, str]:
    """The environment of an MCP server for a broker."""
    own = {
        "KAFSCALE_BOOTSTRAP_SERVERS": broker.address,
        "KAFSCALE_CONTROL_SERVERS": broker.control_address,
        "KAFSCALE_DATA_DIR": str(broker.data),
    }
    return {**os.environ, **own, **settings}


class McpClient:
    """One session with an MCP server."""

    def __init__(self, broker: BrokerProcess, *options: str, **settings: str) -> None:
        self._parameters = StdioServerParameters(
            command=str(PROGRAM), args=["mcp", *options], env=environment(broker, **settings)
        )
        self._ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Queue[Any]]] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve_requests()))

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.result(START_S_MAX)
        return self

    def __exit__(self, *_: object) -> None:
        self._send(None)
        self._thread.join(START_S_MAX)

    def tools(self) -> dict[str, Any]:
        """The tools that the server offers, by name."""
        return {tool.name: tool for tool in self._run(lambda client: client.list_tools()).tools}

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, which must succeed, and return its result."""
        result = self._run(lambda client: client.call_tool(tool, arguments))
        assert not result.is_error, result.content
        return dict(result.structured_content)

    def call_error(self, tool: str, **arguments: Any) -> str:
        """Call a tool, which must fail, and return its error message."""
        result = self._run(lambda client: client.call_tool(tool, arguments))
        assert result.is_error, result.structured_content
        return str(result.content[0].text)

    def _run(self, task: Task) -> Any:
        outcome: Future[Any] = Future()
        self._send((task, outcome))
        return outcome.result(RESPONSE_S_MAX)

    def _send(self, message: Any) -> None:
        loop, requests = self._ready.result(START_S_MAX)
        loop.call_soon_threadsafe(requests.put_nowait, message)

    async def _serve_requests(self) -> None:
        requests: asyncio.Queue[Any] = asyncio.Queue()
        async with Client(stdio_client(self._parameters)) as client:
            self._ready.set_result((asyncio.get_running_loop(), requests))
            while (request := await requests.get()) is not None:
                task, outcome = request
                try:
                    outcome.set_result(await task(client))
                except Exception as error:  # noqa: BLE001 - raised again in the caller.
                    outcome.set_exception(error)

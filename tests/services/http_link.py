"""A link that knows requests: it can answer some of them itself, and lose the answers to others.

Bytes are handed on unchanged, so that signatures hold. A request that is held or late is handed on
even when its client has given up waiting: the server may carry it out long after it was repeated.
"""

import asyncio
import re

from services.http_messages import Message, error_answer, read_answer, read_request
from services.link import Link
from services.link_fault import HEALTHY, Fault

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class HttpLink(Link):
    """One port in front of an HTTP server."""

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client, over one connection of its own to the server."""
        server: Stream | None = None
        try:
            while (request := await read_request(reader, writer)) is not None:
                self.carried.requests += 1
                await self._wait(request)
                fault = self._fault_for(request)
                if self._chance.random() < fault.error_share:
                    self.carried.errors += 1
                    writer.write(error_answer(request, fault.error_status))
                    await writer.drain()
                    continue
                server = server or await self.connect()
                answer = await _exchange(request, server)
                if not await self._answer(request, answer, writer) or answer.is_last:
                    return
        finally:
            if server is not None:
                self.drop(server[1])

    async def _wait(self, request: Message) -> None:
        """Be as late with a request as the fault wants it."""
        await asyncio.sleep(self.delay_s(self._fault_for(request)))
        if self._fault_for(request).stops("requests"):
            self.carried.held += 1
            await self.until(lambda _: not self._fault_for(request).stops("requests"))

    async def _answer(
        self, request: Message, answer: Message, writer: asyncio.StreamWriter
    ) -> bool:
        """Hand an answer on, or lose it: whether the connection is still good."""
        await self.until(lambda _: not self._fault_for(request).stops("answers"))
        fault = self._fault_for(request)
        if self._chance.random() < fault.lost_share:
            self.carried.lost += 1
            raise ConnectionResetError("an answer is lost")
        if self._chance.random() < fault.cut_share:
            self.carried.lost += 1
            writer.write(answer.data[: len(answer.data) // 2])
            await writer.drain()
            return False
        writer.write(answer.data)
        await writer.drain()
        return True

    def _fault_for(self, request: Message) -> Fault:
        is_meant = not self.fault.only or re.search(self.fault.only, request.title)
        return self.fault if is_meant else HEALTHY


async def _exchange(request: Message, server: Stream) -> Message:
    reader, writer = server
    writer.write(request.data)
    await writer.drain()
    return await read_answer(reader, request)

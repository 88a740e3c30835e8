"""A link for HTTP: it can answer requests with errors, and lose responses.

Bytes are forwarded unchanged, so that signatures stay valid. A held or delayed request is forwarded
even if its client has given up: the server may execute it long after a retry. A late request is
forwarded on a connection of its own after its client got a reset, and its response is dropped.
"""

import asyncio
import contextlib
import re

from services.http_messages import Message, error_response, read_request, read_response
from services.link import Link
from services.link_fault import HEALTHY, Fault

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class HttpLink(Link):
    """One port in front of an HTTP server."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client with its own connection to the server."""
        server: Stream | None = None
        try:
            while (request := await read_request(reader, writer)) is not None:
                self.counts.requests += 1
                await self._delay(request)
                fault = self._fault_for(request)
                if self._chance.random() < fault.error_share:
                    self.counts.errors += 1
                    writer.write(error_response(request, fault.error_status))
                    await writer.drain()
                    continue
                if self.is_late(fault):
                    self.start_task(self._deliver_late(request, self.late_s(fault)))
                    raise ConnectionResetError("the request is late")
                server = server or await self.connect()
                response = await _exchange(request, server)
                if not await self._respond(request, response, writer) or response.is_last:
                    return
        finally:
            if server is not None:
                self.drop(server[1])

    async def _delay(self, request: Message) -> None:
        """Delay or hold a request as the fault requires."""
        await asyncio.sleep(self.delay_s(self._fault_for(request)))
        if self._fault_for(request).stops("requests"):
            self.counts.held += 1
            await self.wait_for_fault(lambda _: not self._fault_for(request).stops("requests"))

    async def _deliver_late(self, request: Message, late_s: float) -> None:
        with self.late_request():
            await asyncio.sleep(late_s)
            await self.wait_for_fault(lambda _: not self._fault_for(request).stops("requests"))
            with contextlib.suppress(OSError):  # The server is not running: the request is lost.
                server = await self.connect()
                try:
                    await _exchange(request, server)
                finally:
                    self.drop(server[1])

    async def _respond(
        self, request: Message, response: Message, writer: asyncio.StreamWriter
    ) -> bool:
        """Forward a response, or lose it; return whether the connection can be used further."""
        await self.wait_for_fault(lambda _: not self._fault_for(request).stops("responses"))
        fault = self._fault_for(request)
        if self._chance.random() < fault.lost_share:
            self.counts.lost += 1
            raise ConnectionResetError("the response is lost")
        if self._chance.random() < fault.cut_share:
            self.counts.lost += 1
            writer.write(response.data[: len(response.data) // 2])
            await writer.drain()
            return False
        writer.write(response.data)
        await writer.drain()
        return True

    def _fault_for(self, request: Message) -> Fault:
        is_affected = not self.fault.only or re.search(self.fault.only, request.title)
        return self.fault if is_affected else HEALTHY


async def _exchange(request: Message, server: Stream) -> Message:
    reader, writer = server
    writer.write(request.data)
    await writer.drain()
    return await read_response(reader, request)

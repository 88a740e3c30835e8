"""HTTP/1.1 messages as a proxy needs them: it finds their end and keeps their bytes."""

import asyncio
from typing import NamedTuple

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Message(NamedTuple):
    """A request or a response, byte for byte."""

    first_line: str
    fields: dict[str, str]
    """Header fields by lower-case name."""
    head: bytes
    body: bytes
    is_last: bool = False
    """Whether the sender closes the connection after it."""

    @property
    def data(self) -> bytes:
        return self.head + self.body

    @property
    def title(self) -> str:
        """The method and path of a request, such as `PUT /bucket/key`."""
        return self.first_line.rpartition(" ")[0]


async def read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Message | None:
    """The next request; None when the client has closed the connection.

    A client that sends `Expect: 100-continue` gets its `100 Continue` here.
    """
    head = await _read_head(reader)
    if head is None:
        return None
    if head.fields.get("expect", "").lower() == "100-continue":
        writer.write(CONTINUE)
    return head._replace(body=await _read_body(reader, head.fields))


async def read_response(reader: asyncio.StreamReader, request: Message) -> Message:
    """The final response to a request; interim ones (1xx) are dropped."""
    while True:
        head = await _read_head(reader)
        if head is None:
            raise ConnectionResetError("the server closed the connection without a response")
        status = int(head.first_line.split(" ")[1])
        if status >= 200:
            break
    if request.first_line.startswith("HEAD ") or status in {204, 304}:
        return head
    if "content-length" not in head.fields and "transfer-encoding" not in head.fields:
        return head._replace(body=await reader.read(), is_last=True)
    return head._replace(body=await _read_body(reader, head.fields))


def error_response(request: Message, status: int) -> bytes:
    """An error response as S3 sends it."""
    code = "SlowDown" if status == 503 else "InternalError"
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>test</Message></Error>"
    lines = [
        f"HTTP/1.1 {status} {code}",
        "Content-Type: application/xml",
        f"Content-Length: {len(body)}",
    ]
    if request.first_line.startswith("HEAD "):
        body = ""
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


async def _read_head(reader: asyncio.StreamReader) -> Message | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first_line, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    fields = {}
    for line in lines:
        name, _, text = line.partition(":")
        fields[name.strip().lower()] = text.strip()
    is_last = fields.get("connection", "").lower() == "close"
    return Message(first_line, fields, head, b"", is_last)


async def _read_body(reader: asyncio.StreamReader, fields: dict[str, str]) -> bytes:
    if "chunked" in fields.get("transfer-encoding", "").lower():
        return await _read_chunks(reader)
    return await reader.readexactly(int(fields.get("content-length", "0")))


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    """All chunks with their lengths, and the trailer fields."""
    parts = []
    while True:
        line = await reader.readuntil(b"\r\n")
        parts.append(line)
        size_bytes = int(line.split(b";")[0], 16)
        if not size_bytes:
            break
        parts.append(await reader.readexactly(size_bytes + 2))
    while line != b"\r\n":
        line = await reader.readuntil(b"\r\n")
        parts.append(line)
    return b"".join(parts)

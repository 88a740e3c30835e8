"""HTTP/1.1 as far as a proxy needs it: where a message ends, byte for byte."""

import asyncio
from typing import NamedTuple

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Message(NamedTuple):
    """A request or an answer, exactly as it came."""

    first_line: str
    fields: dict[str, str]
    """By names in lower case."""
    head: bytes
    body: bytes
    is_last: bool = False
    """The connection ends with it."""

    @property
    def data(self) -> bytes:
        return self.head + self.body

    @property
    def title(self) -> str:
        """What a request is about, such as `PUT /bucket/key`."""
        return self.first_line.rpartition(" ")[0]


async def read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Message | None:
    """The next request, or nothing when the client has hung up.

    A client that sends `Expect: 100-continue` gets its `100 Continue` here.
    """
    head = await _read_head(reader)
    if head is None:
        return None
    if head.fields.get("expect", "").lower() == "100-continue":
        writer.write(CONTINUE)
    return head._replace(body=await _read_body(reader, head.fields))


async def read_answer(reader: asyncio.StreamReader, request: Message) -> Message:
    """The answer to a request, without the hints that may come before it."""
    while True:
        head = await _read_head(reader)
        if head is None:
            raise ConnectionResetError("the server hung up without an answer")
        status = int(head.first_line.split(" ")[1])
        if status >= 200:
            break
    if request.first_line.startswith("HEAD ") or status in {204, 304}:
        return head
    if "content-length" not in head.fields and "transfer-encoding" not in head.fields:
        return head._replace(body=await reader.read(), is_last=True)
    return head._replace(body=await _read_body(reader, head.fields))


def error_answer(request: Message, status: int) -> bytes:
    """What S3 says when it has too much to do, or has an accident."""
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
    """Chunks with their lengths, up to the empty one, and the fields behind it."""
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

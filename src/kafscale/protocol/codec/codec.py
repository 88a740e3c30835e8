r"""`Codec`: encode and decode functions of a message in one version, compiled on first use.

>>> from kafscale.protocol.messages.heartbeat import HeartbeatResponse
>>> v4 = codec(HeartbeatResponse, 4, flexible=True)
>>> v4.encode_bytes(HeartbeatResponse(error_code=27)).hex()
'00000000001b00'
>>> v4.decode(b"\x00\x00\x00\x00\x00\x1b\x00").error_code
27
"""

from collections.abc import Callable
from functools import cache
from typing import Generic, TypeVar, cast

from kafscale.errors import ProtocolError
from kafscale.protocol.codec.decoder import write_decoder
from kafscale.protocol.codec.encoder import write_encoder
from kafscale.protocol.codec.wire import Message

Buffer = bytes | bytearray | memoryview

M = TypeVar("M", bound=Message)


class Codec(Generic[M]):
    """Encodes and decodes one message in one version."""

    __slots__ = ("decode_at", "decoder_source", "encode", "encoder_source")

    def __init__(
        self, message: type[M], version: int, *, flexible: bool, elements_max: int | None = None
    ) -> None:
        decoder = write_decoder(message, version, flexible=flexible, elements_max=elements_max)
        encoder = write_encoder(message, version, flexible=flexible)
        file = f"<kafscale {message.__name__} v{version} {{}}>"

        self.decode_at: Callable[[memoryview, int], tuple[M, int]]
        """Decode at a position; return the message and the position after it."""
        self.decode_at = decoder.compile("decode", file.format("decode"))

        self.encode: Callable[[M], list[Buffer]]
        """Encode to a list of parts; records are parts of their own."""
        self.encode = encoder.compile("encode", file.format("encode"))

        self.decoder_source = decoder.text
        self.encoder_source = encoder.text

    def decode(self, buffer: Buffer) -> M:
        """Decode a message that fills the whole buffer."""
        message, position = self.decode_at(memoryview(buffer), 0)
        if position != len(buffer):
            surplus = len(buffer) - position
            raise ProtocolError(f"{surplus} bytes follow the end of a {type(message).__name__}")
        return message

    def encode_bytes(self, message: M) -> bytes:
        return b"".join(self.encode(message))


@cache
def _compiled(
    message: type[Message], version: int, flexible: bool, elements_max: int | None
) -> Codec[Message]:
    return Codec(message, version, flexible=flexible, elements_max=elements_max)


def codec(
    message: type[M], version: int, *, flexible: bool, elements_max: int | None = None
) -> Codec[M]:
    """The codec of a message in one version; compiled once and cached."""
    return cast("Codec[M]", _compiled(message, version, flexible, elements_max))

r"""Parses the messages of SCRAM (RFC 5802, section 7).

    client first    n,,n=alice,r=clientnonce
    server first    r=clientnonceservernonce,s=salt,i=4096
    client final    c=biws,r=clientnonceservernonce,p=proof
    server final    v=signature

A malformed or too long message raises `AuthenticationError`, whose text contains nothing of the
message. Both sides sign the bytes that were sent, never a re-encoded message.
"""

import base64
import re
from typing import Final, NamedTuple

from kafscale.errors import AuthenticationError

MESSAGE_BYTES_MAX: Final = 4 * 1024
"""More than the names and nonces of any client need."""

_NAME = r"(?:[^=,\0]|=2C|=3D)+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"[A-Za-z0-9/+]+={0,2}"
_EXTENSIONS = r"(?:,[A-Za-z]+=[^,\0]+)*"

_CLIENT_FIRST = re.compile(
    rf"(?P<header>n,(?:a=(?P<authorization_id>{_NAME}))?,)"
    rf"(?P<bare>n=(?P<user>{_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS}))"
)
_SERVER_FIRST = re.compile(
    rf"r=(?P<nonce>{_PRINTABLE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[1-9][0-9]{{0,9}})"
    rf"{_EXTENSIONS}"
)
_CLIENT_FINAL = re.compile(
    rf"(?P<unproven>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
    rf",p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL = re.compile(rf"(?:e=(?P<error>[^,\0]+)|v=(?P<signature>{_BASE64})){_EXTENSIONS}")


class ClientFirst(NamedTuple):
    """The client's first message."""

    header: bytes
    """The GS2 header, which the client repeats in its final message."""
    bare: bytes
    """The rest, which both sides sign."""
    user: str
    authorization_id: str
    nonce: str
    extensions: dict[str, str]


class ServerFirst(NamedTuple):
    """The server's challenge."""

    nonce: str
    salt: bytes
    iterations: int


class ClientFinal(NamedTuple):
    """The client's proof."""

    unproven: bytes
    """The message without the proof, which both sides sign."""
    binding: bytes
    nonce: str
    proof: bytes


def client_first(message: bytes) -> ClientFirst:
    match = _match(_CLIENT_FIRST, message, "client first")
    pairs = match["extensions"].removeprefix(",").split(",") if match["extensions"] else []
    return ClientFirst(
        header=match["header"].encode(),
        bare=match["bare"].encode(),
        user=unescape_name(match["user"]),
        authorization_id=unescape_name(match["authorization_id"] or ""),
        nonce=match["nonce"],
        extensions={name: value for name, _, value in (pair.partition("=") for pair in pairs)},
    )


def server_first(message: bytes) -> ServerFirst:
    match = _match(_SERVER_FIRST, message, "server first")
    salt = _bytes(match["salt"], "server first")
    return ServerFirst(match["nonce"], salt, int(match["iterations"]))


def client_final(message: bytes) -> ClientFinal:
    match = _match(_CLIENT_FINAL, message, "client final")
    return ClientFinal(
        unproven=match["unproven"].encode(),
        binding=_bytes(match["binding"], "client final"),
        nonce=match["nonce"],
        proof=_bytes(match["proof"], "client final"),
    )


def server_final(message: bytes) -> bytes:
    """Return the server's signature."""
    match = _match(_SERVER_FINAL, message, "server final")
    if match["error"] is not None:
        raise AuthenticationError(f"the server rejected the proof: {match['error']}")
    return _bytes(match["signature"], "server final")


def encode_base64(value: bytes) -> str:
    """Encode bytes for a message."""
    return base64.b64encode(value).decode()


def escape_name(name: str) -> str:
    """Escape a user name for a message.

    >>> escape_name("a,b=c")
    'a=2Cb=3Dc'
    """
    return name.replace("=", "=3D").replace(",", "=2C")


def unescape_name(name: str) -> str:
    """Unescape a user name of a message."""
    return name.replace("=2C", ",").replace("=3D", "=")


def _match(pattern: re.Pattern[str], message: bytes, kind: str) -> re.Match[str]:
    if len(message) <= MESSAGE_BYTES_MAX:
        try:
            match = pattern.fullmatch(message.decode())
        except UnicodeDecodeError:
            match = None
        if match is not None:
            return match
    raise _malformed(kind)


def _bytes(value: str, kind: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        raise _malformed(kind) from None


def _malformed(kind: str) -> AuthenticationError:
    return AuthenticationError(f"Invalid SCRAM {kind} message format")

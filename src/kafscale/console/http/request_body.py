"""What a request brings, made into shapes of the contract: its body and its query.

The law: no more of a body is read than a bound allows, and what is not of the right form is said
to be so, not guessed at.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.requests import Request

from kafscale.errors import InvalidRequestError

JSON: Final = "application/json"
BODY_BYTES_MAX: Final = 1 << 20


class TooLargeError(InvalidRequestError):
    """A body that is not read to its end."""


async def body(request: Request, kind: Any, *, bytes_max: int = BODY_BYTES_MAX) -> Any:
    """The body, which has to be JSON: a form of another site cannot send that unasked."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != JSON:
        raise InvalidRequestError(f"send JSON, with the header Content-Type: {JSON}")
    read = bytearray()
    async for piece in request.stream():
        read += piece
        if len(read) > bytes_max:
            raise TooLargeError(f"this request may have {bytes_max} bytes at most; send less")
    return msgspec.json.decode(read, type=kind)


def query(parameters: Mapping[str, str], kind: Any) -> Any:
    """What stands behind the question mark, where numbers are written as text."""
    return msgspec.convert(dict(parameters), type=kind, strict=False)

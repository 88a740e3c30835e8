"""Reads the body and the query of requests into types of the schema.

The size of a body is bounded, and invalid input is rejected.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.requests import Request

from kafscale.errors import InvalidRequestError

JSON: Final = "application/json"
BODY_BYTES_MAX: Final = 1 << 20


class TooLargeError(InvalidRequestError):
    """A body exceeds its limit."""


async def read_body(request: Request, model: Any, *, bytes_max: int = BODY_BYTES_MAX) -> Any:
    """Read a JSON body. Forms of other sites cannot send this content type without preflight."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != JSON:
        raise InvalidRequestError(f"send JSON with the header Content-Type: {JSON}")
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > bytes_max:
            raise TooLargeError(f"the request body exceeds {bytes_max} bytes")
    return msgspec.json.decode(content, type=model)


def parse_query(parameters: Mapping[str, str], model: Any) -> Any:
    """Parse the query string, where numbers are text."""
    return msgspec.convert(dict(parameters), type=model, strict=False)

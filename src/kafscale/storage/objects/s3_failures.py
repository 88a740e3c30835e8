"""What went wrong at S3, told from what its client says.

The client has few types of error and says the rest in prose, so this module reads the prose: the
status of the answer, and the code and message in its body. The laws: what may pass is a
`StoreUnavailableError`, all else fails at once; and only the fields that are picked out here go any
further, because the rest of an answer may repeat what was sent to sign the request.
"""

import re
from typing import Final

from obstore.exceptions import AlreadyExistsError, BaseError

from kafscale.errors import (
    ObjectExistsError,
    ObjectNotFoundError,
    OperatingError,
    StoreUnavailableError,
)

CLIENT_ERRORS: Final = (BaseError, FileNotFoundError)
"""Everything that obstore raises for a request that failed."""

_STATUS: Final = re.compile(r"status code: (\d{3})")
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_MESSAGE: Final = re.compile(r"<Message>([^<]*)</Message>")
_TRANSPORT: Final = re.compile(r"HttpError \{\s*kind: (\w+)")
_DETAIL: Final = re.compile(r'(?:message|error): "([^"]*)"')

_READS: Final = {"get", "head"}
_MISSING_OBJECT: Final = {"", "NoSuchKey", "NotFound"}
_PASSING_STATUSES: Final = {408, 409, 425, 429, 500, 502, 503, 504}
_PASSING_CODES: Final = {"RequestTimeout", "SlowDown", "ServiceUnavailable", "InternalError"}


class RangeBeyondEndError(OperatingError):
    """A range that begins where the object has ended: this room's own, and no failure outside."""


def translate(verb: str, key: str, error: Exception) -> OperatingError:
    """The error of ours that says what the client's error says."""
    text = str(error)
    status = int(_first(_STATUS, text) or 0)
    code = _first(_CODE, text)
    if isinstance(error, AlreadyExistsError) and status != 409:
        return ObjectExistsError(key)
    if status == 416:
        return RangeBeyondEndError(key)
    if status == 404 and verb in _READS and code in _MISSING_OBJECT:
        return ObjectNotFoundError(key)
    # Status 409 is S3's word for a conditional PUT that crossed another and must be tried again.
    passing = not status or status in _PASSING_STATUSES or code in _PASSING_CODES
    reason = _answer(status, code, text) if status else _transport(text)
    return (StoreUnavailableError if passing else OperatingError)(f"{verb} {key}: {reason}")


def _answer(status: int, code: str, text: str) -> str:
    words = [f"status {status}", code, _first(_MESSAGE, text)]
    return ", ".join(word for word in words if word)


def _transport(text: str) -> str:
    """Why there was no answer; obstore's first line names no address when it is not about one."""
    kind = _first(_TRANSPORT, text)
    if not kind:
        return text.partition("\n")[0]
    return ", ".join(word for word in (f"{kind.lower()} failed", _first(_DETAIL, text)) if word)


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found.group(1) if found else ""

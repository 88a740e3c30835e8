"""What decoding JSON raises, whatever the bytes are."""

from typing import Final

import msgspec

DECODE_ERRORS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""For bytes that are not JSON or not of the expected type, not UTF-8, or nested too deep."""

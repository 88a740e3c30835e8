"""Quotas as people write and read them: rates, and whom they are for."""

from collections.abc import Mapping
from typing import Final

from kafscale.errors import InvalidRequestError
from kafscale.security.quota.types import (
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    QUOTA_TYPES,
    REQUEST_PERCENTAGE,
)
from kafscale.text.formatting import bytes_in_words
from kafscale.text.units import parse_size

DEFAULT: Final = "<default>"
"""How the default of a type is shown."""

_SIZES: Final = frozenset({PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE})


def parse(key: str, text: str) -> float:
    """The rate that `text` means; a `ValueError` says what is wrong with it.

    >>> parse("producer_byte_rate", "1Mi"), parse("request_percentage", "12.5")
    (1048576.0, 12.5)
    """
    kind = QUOTA_TYPES.get(key)
    if kind is None:
        raise ValueError(f"{key} is no quota; there are {', '.join(QUOTA_TYPES)}")
    try:
        value = float(parse_size(text) if key in _SIZES else text.rstrip("%"))
        kind.check(value)
    except InvalidRequestError as error:
        raise ValueError(str(error)) from None
    except ValueError:
        example = "1Mi" if key in _SIZES else "50"
        raise ValueError(f"{key}: {text!r} is not a rate, such as {example}") from None
    return value


def show(key: str, value: float) -> str:
    """A rate in words.

    >>> show("producer_byte_rate", 1048576), show("request_rate", 0.5)
    ('1.0 MiB/s', '0.5/s')
    """
    if key in _SIZES:
        return f"{bytes_in_words(value)}/s"
    return f"{value:g}%" if key == REQUEST_PERCENTAGE else f"{value:g}/s"


def name(entity: Mapping[str, str | None]) -> str:
    """Whom a quota is for.

    >>> name({"user": "alice", "client-id": None})
    'user alice, client-id <default>'
    """
    return ", ".join(f"{kind} {DEFAULT if who is None else who}" for kind, who in entity.items())

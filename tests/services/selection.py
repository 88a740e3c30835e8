"""Which parameters of a test run in `make test`, and which only in `make test-all`."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def long_except(values: Iterable[Any], is_kept: Callable[[Any], bool]) -> list[Any]:
    """Mark all values but the representative ones as long.

    >>> [getattr(value, "values", value) for value in long_except("abc", "b".__eq__)]
    [('a',), 'b', ('c',)]
    """
    return [
        value if is_kept(value) else pytest.param(value, marks=pytest.mark.long) for value in values
    ]

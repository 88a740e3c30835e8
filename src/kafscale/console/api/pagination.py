"""Pages of long lists: which part of one is asked for, within bounds."""

from collections.abc import Sequence
from typing import Final, TypeVar

from kafscale.errors import InvalidRequestError

SIZE_MAX: Final = 500
PAGE_MAX: Final = 1_000_000

Item = TypeVar("Item")


def first_of(page: int, size: int) -> int:
    """How many items come before a page; an error says that there is no such page.

    >>> first_of(1, 50), first_of(3, 50)
    (0, 100)
    """
    if not 1 <= size <= SIZE_MAX:
        raise InvalidRequestError(f"a page has 1 to {SIZE_MAX} items, not {size}")
    if not 1 <= page <= PAGE_MAX:
        raise InvalidRequestError(f"pages are counted from 1 to {PAGE_MAX:,}; there is no {page}")
    return (page - 1) * size


def cut(items: Sequence[Item], page: int, size: int) -> list[Item]:
    """The items of a page; none if it lies behind the last.

    >>> cut("abcde", 2, 2), cut("abcde", 9, 2)
    (['c', 'd'], [])
    """
    first = first_of(page, size)
    return list(items[first : first + size])

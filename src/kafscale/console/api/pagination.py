"""Pages of long lists."""

from collections.abc import Sequence
from typing import Final, TypeVar

from kafscale.errors import InvalidRequestError

SIZE_MAX: Final = 500
PAGE_MAX: Final = 1_000_000

Item = TypeVar("Item")


def page_start(page: int, size: int) -> int:
    """The index of the first item of a page; raises an error for an invalid page.

    >>> page_start(1, 50), page_start(3, 50)
    (0, 100)
    """
    if not 1 <= size <= SIZE_MAX:
        raise InvalidRequestError(f"a page has 1 to {SIZE_MAX} items, not {size}")
    if not 1 <= page <= PAGE_MAX:
        raise InvalidRequestError(f"a page number is between 1 and {PAGE_MAX:,}, not {page}")
    return (page - 1) * size


def page_items(items: Sequence[Item], page: int, size: int) -> list[Item]:
    """The items of a page; empty after the last page.

    >>> page_items("abcde", 2, 2), page_items("abcde", 9, 2)
    (['c', 'd'], [])
    """
    first = page_start(page, size)
    return list(items[first : first + size])

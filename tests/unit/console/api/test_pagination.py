"""Pages have bounds, which are said."""

import pytest

from kafscale.console.api.pagination import SIZE_MAX, cut
from kafscale.errors import InvalidRequestError


@pytest.mark.parametrize("size", [0, -1, SIZE_MAX + 1])
def test_a_page_is_neither_empty_nor_endless(size):
    with pytest.raises(InvalidRequestError, match="a page has 1 to 500 items"):
        cut([1, 2], 1, size)


@pytest.mark.parametrize("page", [0, -1, 2**63])
def test_pages_are_counted_from_one(page):
    with pytest.raises(InvalidRequestError, match="counted from 1"):
        cut([1, 2], page, 10)


def test_pages_together_are_the_list():
    items = list(range(1_001))
    assert [each for page in range(1, 5) for each in cut(items, page, SIZE_MAX)] == items

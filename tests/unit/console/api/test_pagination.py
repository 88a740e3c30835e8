"""Limits of pages."""

import pytest

from kafscale.console.api.pagination import SIZE_MAX, page_items
from kafscale.errors import InvalidRequestError


@pytest.mark.parametrize("size", [0, -1, SIZE_MAX + 1])
def test_page_size_is_limited(size):
    with pytest.raises(InvalidRequestError, match="a page has 1 to 500 items"):
        page_items([1, 2], 1, size)


@pytest.mark.parametrize("page", [0, -1, 2**63])
def test_page_numbers_start_at_one(page):
    with pytest.raises(InvalidRequestError, match="between 1 and"):
        page_items([1, 2], page, 10)


def test_pages_cover_the_list():
    items = list(range(1_001))
    assert [each for page in range(1, 5) for each in page_items(items, page, SIZE_MAX)] == items

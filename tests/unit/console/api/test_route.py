"""Routes of the API, and pages of long lists."""

from importlib import import_module
from pkgutil import iter_modules

import msgspec
import pytest

from kafscale.console import api
from kafscale.console.api.route import SIZE_MAX, page_items
from kafscale.console.app import ALL_ROUTES
from kafscale.console.schema.base import RequestModel
from kafscale.errors import InvalidRequestError


def test_all_modules_are_in_the_table():
    modules = [
        import_module(f"{api.__name__}.{module_info.name}")
        for module_info in iter_modules(api.__path__)
    ]
    declared = [route for module in modules for route in getattr(module, "ROUTES", ())]
    assert {(route.method, route.path) for route in ALL_ROUTES} == {
        (route.method, route.path) for route in declared
    }


def test_routes_are_unique():
    assert len({(route.method, route.path) for route in ALL_ROUTES}) == len(ALL_ROUTES)


@pytest.mark.parametrize("route", ALL_ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_route_is_consistent(route):
    assert route.path.startswith("/")
    assert route.handle.__module__.startswith(api.__name__)
    if route.method == "GET":
        assert route.body is None
        assert route.response is not None
    for model in (route.body, route.query):
        assert model is None or issubclass(model, RequestModel)
    if route.response is not None:
        assert msgspec.json.schema(route.response)


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

"""The table of routes is complete and consistent."""

from importlib import import_module
from pkgutil import iter_modules

import msgspec
import pytest

from kafscale.console import api
from kafscale.console.api.routes import ALL_ROUTES
from kafscale.console.schema.base import RequestModel


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
